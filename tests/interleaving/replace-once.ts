/** Fails when there is not exactly one place: what was to be changed would be the statement itself. */
export function replaceOnce(text: string, from: string | RegExp, to: string): string {
  const parts = text.split(from)
  if (parts.length !== 2) throw new Error(`expected one match of ${String(from)}, got ${parts.length - 1}`)
  return parts.join(to)
}
