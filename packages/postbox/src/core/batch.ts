import { OutboxError } from './errors.ts'
import type { Conflict, Draft } from './message.ts'
import { show } from './show.ts'
import { byteLength } from './text.ts'

/** Messages of one queue that one statement will insert. */
export interface Batch {
  readonly queue: string
  readonly drafts: readonly Draft[]
  readonly conflict: Conflict
}

/** Drafts that were made one by one, as one statement's worth; loaded when there is a batch. */
export function batchOf(queue: string, drafts: readonly Draft[]): Batch {
  assertDistinct(drafts, 'id')
  assertFits(drafts)
  return { queue, drafts, conflict: agreedConflict(drafts) }
}

/** One statement has one conflict clause, and refuses to touch a row twice: both would fail in the caller's transaction. */
function agreedConflict(drafts: readonly Draft[]): Conflict {
  const conflicts = new Set<Conflict>()
  for (const { conflict } of drafts) if (conflict !== 'none') conflicts.add(conflict)
  if (conflicts.size > 1) {
    throw new OutboxError(
      'OUTBOX_INVALID_OPTION',
      'expected `onConflict` to be the same for the whole batch, got `keep` and `replace`',
    )
  }
  const conflict = [...conflicts][0] ?? 'none'
  if (conflict === 'replace') assertDistinct(drafts, 'timerId')
  return conflict
}

/** What a batch has may travel as one JSON text, which Postgres limits to 256 MiB, and says so inside the caller's transaction. */
const mostBytes = 250_000_000

export function assertFits(drafts: readonly Draft[]): void {
  let bytes = 0
  for (const draft of drafts) bytes += sizeInBatch(draft)
  if (bytes <= mostBytes) return
  const sentence = `expected a batch to be at most ${mostBytes} bytes as JSON (bodies in base64), got ${bytes} bytes: publish it in parts`
  throw new OutboxError('OUTBOX_BODY_TOO_LARGE', sentence)
}

function sizeInBatch({ body, headers, key, timerId }: Draft): number {
  const inHeaders = headers === null ? 0 : byteLength(JSON.stringify(headers))
  return (
    256 + Math.ceil(body.byteLength / 3) * 4 + inHeaders + byteLength(key ?? '') + byteLength(timerId ?? '')
  )
}

function assertDistinct(drafts: readonly Draft[], member: 'id' | 'timerId'): void {
  const seen = new Set<string>()
  for (const [index, draft] of drafts.entries()) {
    const value = draft[member]
    if (value === null) continue
    if (seen.has(value)) {
      throw new OutboxError(
        'OUTBOX_INVALID_OPTION',
        `bodies[${index}]: expected each \`${member}\` once in a batch, got ${show(value)} again`,
      )
    }
    seen.add(value)
  }
}
