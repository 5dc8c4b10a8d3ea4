/** A command line that asks for nothing that exists. */
export class UsageError extends Error {
  override readonly name: string = 'UsageError';
  /** The option that does not exist, where it is about one. */
  readonly option: string | undefined;

  constructor(message: string, options: ErrorOptions & { readonly option?: string } = {}) {
    const { option, ...rest } = options;
    super(message, rest);
    this.option = option;
  }
}

/** A file that cannot be used. Nothing has been called or written. */
export class FileError extends Error {
  override readonly name: string = 'FileError';
}
