import { OutboxError } from './errors.ts'
import { expected } from './validate.ts'

/** Where a dead letter lies: moved to its table, or still among the messages (`quarantined`): kept there, or because it could not be moved. */
export type DeadPlace = 'moved' | 'quarantined'

/** A place in the list of dead letters: newest first, moved ones before quarantined ones of the same microsecond. */
export interface DeadLetterCursor {
  /** When it failed, in microseconds since 1970, as text: the digits that a Date would lose tell two rows apart. */
  readonly failedMicros: string
  readonly place: DeadPlace
  readonly seq: string
}

const letters = { moved: 'd', quarantined: 'q' } as const satisfies Record<DeadPlace, string>
const form = /^(-?\d{1,16})-([dq])-(\d{1,19})$/

export const largestSeq = 2n ** 63n - 1n

/** What callers keep: opaque to them, fit for a URL. */
export function cursorText({ failedMicros, place, seq }: DeadLetterCursor): string {
  return `${failedMicros}-${letters[place]}-${seq}`
}

export function readCursor(given: string): DeadLetterCursor {
  const [, failedMicros, letter, seq] = form.exec(given) ?? []
  if (failedMicros !== undefined && seq !== undefined && BigInt(seq) <= largestSeq) {
    return { failedMicros, place: letter === letters.moved ? 'moved' : 'quarantined', seq }
  }
  throw new OutboxError(
    'OUTBOX_INVALID_OPTION',
    expected('after', 'to be the `next` of a page of dead letters', given),
  )
}

/** Up to which seq the rest of one place goes, among rows that failed in the cursor's microsecond. */
export function seqUpTo({ place, seq }: DeadLetterCursor, of: DeadPlace): string {
  if (place === of) return String(BigInt(seq) - 1n)
  return of === 'quarantined' ? String(largestSeq) : '0'
}

/** The same upwards, for who reads the oldest first: from which seq on. */
export function seqFrom({ place, seq }: DeadLetterCursor, of: DeadPlace): string {
  if (place === of) return String(BigInt(seq) + 1n)
  return of === 'quarantined' ? '0' : String(largestSeq)
}
