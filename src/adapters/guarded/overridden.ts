/**
 * An object with some members replaced and everything else as it was: symbols, getters and members that are not
 * enumerable included, by which frameworks mark their own.
 */
export function overridden<T extends object>(original: T, members: Readonly<Record<string, unknown>>): T {
  const descriptors = Object.getOwnPropertyDescriptors(original) as PropertyDescriptorMap;
  for (const [name, value] of Object.entries(members))
    descriptors[name] = { value, writable: true, enumerable: true, configurable: true };
  return Object.create(Object.getPrototypeOf(original) as object | null, descriptors) as T;
}
