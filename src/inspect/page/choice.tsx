import type { JSX } from 'preact';
import type { Box } from './box.ts';

interface ChoiceProps<T extends string> {
  readonly label: string;
  readonly box: Box<T>;
  /** What is chosen, where that is not what a person chose. */
  readonly value?: T;
  readonly options: ReadonlyArray<readonly [value: T, label: string]>;
}

/** One of several. */
export const Choice = <T extends string>({ label, box, value = box.held, options }: ChoiceProps<T>): JSX.Element => (
  <select
    aria-label={label}
    value={value}
    onChange={({ currentTarget }) => {
      box.held = currentTarget.value as T;
    }}
  >
    {options.map(([name, text]) => (
      <option value={name}>{text}</option>
    ))}
  </select>
);
