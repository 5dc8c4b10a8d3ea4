/**
 * Codes of a slip in the tool's own program, or of an answer that it could not use: Node's and its libraries' `ERR_`,
 * and JSON-RPC's numbers, which servers also send for an output that does not fit. They are given at any line that the
 * program has come to, so before the effect or after it.
 */
const SLIP = /^(?:UND_)?ERR_|^-32\d{3}$/;

/** Whether a code is one of a program's own slip. */
export function isSlip(code: string): boolean {
  return SLIP.test(code);
}
