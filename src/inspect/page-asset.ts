/** The inspector's page, bundled. */
export interface PageAsset {
  /** The script, which runs by itself. */
  readonly script: string;
  /** The style sheet. */
  readonly style: string;
}

/** Where the sources' own bundler is; the package has what it made in place of this module. */
const BUNDLER = new URL('../../.ci/page.ts', import.meta.url);

let bundled: Promise<PageAsset> | undefined;

const bundle = async (): Promise<PageAsset> => {
  const { bundlePage } = (await import(BUNDLER.href)) as { readonly bundlePage: () => Promise<PageAsset> };
  return bundlePage();
};

/**
 * The page. From the sources it is bundled when it is first asked for, so that a clone needs no build; in the package
 * this module is replaced by one that holds what the build has bundled.
 */
export function pageAsset(): Promise<PageAsset> {
  return (bundled ??= bundle());
}
