/** Bytes of a text as Postgres stores it. Limits are in bytes: an accented name is longer than it looks. */
export function byteLength(text: string): number {
  return Buffer.byteLength(text)
}

/**
 * Why Postgres would refuse (or silently alter) this text, or null. A NUL fails as text and as jsonb; an unpaired
 * surrogate is replaced on its way to UTF-8, so two different keys could become one.
 */
export function textProblem(text: string): string | null {
  if (text.includes('\u0000')) return 'contains a NUL character'
  if (hasLoneSurrogate(text)) return 'contains an unpaired surrogate (half an emoji)'
  return null
}

export function hasLoneSurrogate(text: string): boolean {
  return !text.isWellFormed()
}
