/** Whether a text is a REST manifest: what tells one from a plan is its address. */
export function isManifest(text: string): boolean {
  return /^["']?base_url["']?\s*:/m.test(text) || /"base_url"\s*:/.test(text);
}
