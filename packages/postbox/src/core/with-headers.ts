import { assertFits } from './batch.ts'
import { addHeaders } from './draft.ts'
import { headersToStore } from './headers.ts'
import type { Draft } from './message.ts'

/** The same messages with more headers, still one statement's worth. Those that a message has stay as they are. */
export function withHeaders(
  drafts: readonly Draft[],
  added: ReadonlyMap<string, string>,
  maxBytes: number,
): readonly Draft[] {
  if (added.size === 0) return drafts
  const larger = drafts.map((draft) => {
    const headers = new Map(Object.entries(draft.headers ?? {}))
    addHeaders(headers, added)
    return { ...draft, headers: headersToStore(headers, maxBytes) }
  })
  assertFits(larger)
  return larger
}
