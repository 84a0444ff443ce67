const encoder = new TextEncoder()

/** Bytes of a text as Postgres stores it. Limits are in bytes: an accented name is longer than it looks. */
export function byteLength(text: string): number {
  return encoder.encode(text).byteLength
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
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    if (unit < 0xd800 || unit > 0xdfff) continue
    const next = text.charCodeAt(index + 1)
    if (unit > 0xdbff || !(next >= 0xdc00 && next <= 0xdfff)) return true
    index++
  }
  return false
}
