import { OutboxError } from './errors.ts'
import { type Check, expected, isRecord, name, optionProblems, type Shape, wholeNumber } from './validate.ts'

/** Which message is handled, and by whom. */
export interface OnceOptions {
  /** Who handles it: each consumer handles each id once. 1 to 255 bytes. */
  readonly consumer: string
  /** The message's id, whoever gave it: any text of 1 to 1,024 bytes. */
  readonly id: string
  /**
   * How long to wait for somebody who handles this very id in a transaction that is still open; 0: not at all. Your own transaction is open
   * meanwhile. @default 1_000
   */
  readonly lockMs?: number | undefined
}

export interface OnceQuery {
  readonly consumer: string
  readonly id: string
  readonly lockMs: number
}

const longestWaitMs = 3_600_000

/** An index entry holds both, and no more than a third of a page. */
const consumer = name(255)

const id: Check = (value) => {
  const problem = name(1024)(value)
  return problem?.includes('bytes') ? `${problem}; pass a hash of it` : problem
}

const onceShape = {
  consumer,
  id,
  lockMs: wholeNumber(0, longestWaitMs),
} satisfies Shape & Record<keyof OnceOptions, Check>

export function resolveOnce(given: OnceOptions, work: unknown): OnceQuery {
  const problems = [
    ...optionProblems(given, onceShape, 'the message to handle once'),
    ...(['consumer', 'id'] as const)
      .filter((required) => isRecord(given) && given[required] === undefined)
      .map((required) => expected(required, 'to be a non-empty string', undefined)),
    ...(typeof work === 'function' ? [] : [expected('work', 'to be a function', work)]),
  ]
  if (problems.length > 0) throw new OutboxError('OUTBOX_INVALID_OPTION', problems.join('; '))
  return { consumer: given.consumer, id: given.id, lockMs: given.lockMs ?? 1_000 }
}

const firstLookMs = 5
const longestLookMs = 100

/**
 * How long to wait before looking again whether the other has ended; null: the time is over. Its end is not announced, and most handlers take
 * milliseconds: soon at first, then seldom enough that those who wait do not burden the server. The last look comes when the time is over.
 */
export function nextLookMs(looks: number, leftMs: number): number | null {
  return leftMs <= 0 ? null : Math.min(firstLookMs * 2 ** (looks - 1), longestLookMs, leftMs)
}
