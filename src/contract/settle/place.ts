/** How a place in a value is written: `messages[*].id`. */
export const PLACE: RegExp = /^[^.[\]{}\s]+(?:\.[^.[\]{}\s]+|\[\d{1,9}\]|\[\*\]|\["[^"\\]*"\])*$/;
