/** An identifier as SQL, for the few statements that take no parameter in its place (LISTEN). */
export function quoted(identifier: string): string {
  return `"${identifier.replaceAll('"', '""')}"`
}
