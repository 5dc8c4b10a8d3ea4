/**
 * An object with some members of our `own`, and which is otherwise the object itself: its methods run on it, since they
 * use private fields that a proxy has not. The proxy's own target is an empty object, so that nothing about the
 * original binds what may be answered.
 */
export function proxied<T extends object>(original: T, own: Readonly<Record<string, unknown>>): T {
  const bound = new WeakMap<object, object>();
  const boundTo = (method: (...args: never[]) => unknown): object => {
    const known = bound.get(method) ?? method.bind(original);
    bound.set(method, known);
    return known;
  };
  return new Proxy(Object.create(Object.getPrototypeOf(original) as object | null) as T, {
    get: (_target, name) => {
      if (typeof name === 'string' && Object.hasOwn(own, name)) return own[name];
      const value: unknown = Reflect.get(original, name, original);
      return typeof value === 'function' && name !== 'constructor'
        ? boundTo(value as (...args: never[]) => unknown)
        : value;
    },
    set: (_target, name, value) => Reflect.set(original, name, value, original),
    has: (_target, name) => Reflect.has(original, name) || Object.hasOwn(own, String(name)),
  });
}
