/** How often what stands before is repeated: `*`, `+`, `{2,}`, `{2,5}`. A `?` repeats nothing. */
const REPEATED = /(?:[*+]|\{\d+(?:,\d*)?\})/y;
const UNBOUNDED = /^(?:[*+]|\{\d+,\})/;

/** A repetition, or a choice, inside something that is repeated itself. Some of these are harmless; the others take exponential time. */
const mayExplode = (pattern: string): boolean => {
  const plain = pattern.replaceAll(/\\./gs, 'x').replaceAll(/\[[^\]]*\]/g, 'x').replaceAll(/\(\?(?:<?[=!]|:|<\w+>)/g, '(');
  const groups = [false];
  for (let at = 0; at < plain.length; at++) {
    const sign = plain[at] ?? '';
    if (sign === '(') groups.push(false);
    if (sign === '|') groups[groups.length - 1] = true;
    if (sign === '(' || sign === '|') continue;
    const inner = sign === ')' && groups.length > 1 && groups.pop() === true;
    REPEATED.lastIndex = at + 1;
    const times = REPEATED.exec(plain)?.[0] ?? '';
    if (inner && times !== '') return true;
    if (inner || UNBOUNDED.test(times)) groups[groups.length - 1] = true;
    at += times.length;
  }
  return false;
};

/**
 * A pattern of a foreign schema, as Ajv asks for it. Whoever wrote it could otherwise stop the whole process with one call's input.
 * @throws RangeError for one that may take exponential time
 */
const compile = (pattern: string, flags: string): RegExp => {
  if (mayExplode(pattern)) throw new RangeError(`a pattern repeats what repeats or chooses, which can take exponential time: ${JSON.stringify(pattern.slice(0, 64))}`);
  return new RegExp(pattern, flags);
};

/** `code` is how compiled code makes the pattern again, once it has been let through. */
export const wirePattern: typeof compile & { readonly code: string } = Object.assign(compile, { code: 'new RegExp' });
