import { type DraftRules, makeDraft } from './draft.ts'
import { OutboxError } from './errors.ts'
import type { Conflict, Draft } from './message.ts'
import type { PublishOptions } from './publish-options.ts'
import { assertQueue } from './queue-name.ts'
import { show } from './show.ts'
import { byteLength } from './text.ts'

/** Messages of one queue that one statement will insert. */
export interface Batch {
  readonly queue: string
  readonly drafts: readonly Draft[]
  readonly conflict: Conflict
}

/** What the caller asked to publish, as it was given. `options` for all, or by body. */
export interface BatchInput {
  readonly queue: string
  readonly bodies: readonly unknown[]
  readonly options: PublishOptions | ((body: never, index: number) => PublishOptions) | undefined
}

/** Validates and encodes a batch, in the order of `makeDraft`; an error names the body: `bodies[3]`. */
export async function makeBatch(rules: DraftRules, { queue, bodies, options }: BatchInput): Promise<Batch> {
  // An empty batch is checked like a full one: a wrong queue name must not pass on the days when there is nothing to send.
  assertQueue(queue, rules.queues)
  if (!Array.isArray(bodies)) {
    throw new OutboxError('OUTBOX_INVALID_BODY', `expected \`bodies\` to be an array, got ${show(bodies)}`)
  }
  const begin = async (body: unknown, index: number): Promise<Draft> => {
    try {
      const own = typeof options === 'function' ? options(body as never, index) : options
      return await makeDraft(rules, { queue, body, options: own })
    } catch (error) {
      throw OutboxError.at(`bodies[${index}]`, error)
    }
  }
  // All are begun, and so read and encoded, before any is awaited: the caller may change what it passed meanwhile.
  const begun = await Promise.allSettled(Array.from(bodies, begin))
  const drafts = begun.map(draftOrThrow)
  assertDistinct(drafts, 'id')
  assertFits(drafts)
  return { queue, drafts, conflict: agreedConflict(drafts) }
}

function draftOrThrow(ended: PromiseSettledResult<Draft>): Draft {
  if (ended.status === 'fulfilled') return ended.value
  throw ended.reason
}

/** One statement has one conflict clause, and refuses to touch a row twice: both would fail in the caller's transaction. */
function agreedConflict(drafts: readonly Draft[]): Conflict {
  const conflicts = new Set(drafts.map((draft) => draft.conflict).filter((conflict) => conflict !== 'none'))
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

/** A batch travels as one JSON value, which Postgres limits to 256 MiB, and says so inside the caller's transaction. */
const mostBytes = 250_000_000

export function assertFits(drafts: readonly Draft[]): void {
  const bytes = drafts.reduce((sum, draft) => sum + sizeInBatch(draft), 0)
  if (bytes <= mostBytes) return
  const sentence = `expected a batch to be at most ${mostBytes} bytes as JSON (bodies in base64), got ${bytes} bytes: publish it in parts`
  throw new OutboxError('OUTBOX_BODY_TOO_LARGE', sentence)
}

function sizeInBatch({ body, headers, key, timerId }: Draft): number {
  const texts = [headers === null ? '' : JSON.stringify(headers), key ?? '', timerId ?? '']
  return 256 + Math.ceil(body.byteLength / 3) * 4 + texts.reduce((sum, text) => sum + byteLength(text), 0)
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
