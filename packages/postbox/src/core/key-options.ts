import { assertAnswered, assertGiven } from './bulk-options.ts'
import { largestSeq } from './dead-letter-cursor.ts'
import { OutboxError } from './errors.ts'
import { assertQueue } from './queue-name.ts'
import {
  anything,
  assertOptions,
  assertValue,
  type Check,
  expected,
  name,
  type Shape,
  wholeNumber,
} from './validate.ts'

/** Why a key waits. `parked`: its first message is dead, and somebody has to decide. `retrying`: its first message is to be tried again. */
export type BlockedState = 'parked' | 'retrying'

export interface KeyListOptions {
  /** One that this outbox no longer defines, too. */
  readonly queue: string
  /** @default true, both */
  readonly blocked?: BlockedState | true | undefined
  /** How many at most, from 1 to 200. @default 50 */
  readonly limit?: number | undefined
  /** The `next` of the page before. */
  readonly after?: string | undefined
}

export interface KeyOptions {
  /** Who decides, for the message's history or the operation. At most 255 bytes. */
  readonly by: string
}

/** A place in the list of keys: parked ones by key, then the others by the time of their next run. */
export type KeyCursor =
  | { readonly state: 'parked'; readonly key: string }
  | { readonly state: 'retrying'; readonly dueMicros: string; readonly seq: string }

export interface KeyListQuery {
  readonly queue: string
  readonly state: BlockedState | null
  readonly limit: number
  readonly after: KeyCursor | null
}

const blocked: Check = (value) =>
  value === true || value === 'parked' || value === 'retrying'
    ? null
    : `to be 'parked', 'retrying', or true for both`

// A queue has a code of its own.
const listShape = {
  queue: anything,
  blocked,
  limit: wholeNumber(1, 200),
  after: (value) => (typeof value === 'string' ? null : 'to be a string'),
} satisfies Shape & Record<keyof KeyListOptions, Check>

const keyShape = { by: name(255) } satisfies Shape & Record<keyof KeyOptions, Check>

export function resolveKeyList(given: KeyListOptions): KeyListQuery {
  assertGiven(given, 'the options of list', '{ queue }')
  assertOptions(given, listShape, 'the options of list')
  const { queue, blocked = true, limit = 50, after } = given
  assertQueue(queue, null)
  const state = blocked === true ? null : blocked
  return { queue, state, limit, after: after === undefined ? null : readKeyCursor(after) }
}

/** Refuses what nobody answers for. */
export function assertKeyDecision(
  method: string,
  { queue, key, options }: { readonly queue: unknown; readonly key: unknown; readonly options: KeyOptions },
): void {
  assertQueue(queue, null)
  assertValue('OUTBOX_INVALID_OPTION', { label: 'key', check: name(1024), value: key })
  assertAnswered(options, keyShape, `the options of ${method}`)
}

/** What callers keep: opaque to them, fit for a URL as it is. */
export function keyCursorText(cursor: KeyCursor): string {
  if (cursor.state === 'retrying') return `r-${cursor.dueMicros}-${cursor.seq}`
  return `p-${encodeURIComponent(cursor.key).replaceAll('~', '%7E').replaceAll('%', '~')}`
}

const retryingForm = /^r-(-?\d{1,16})-(\d{1,19})$/

export function readKeyCursor(given: string): KeyCursor {
  const [, dueMicros, seq] = retryingForm.exec(given) ?? []
  if (dueMicros !== undefined && seq !== undefined && BigInt(seq) <= largestSeq)
    return { state: 'retrying', dueMicros, seq }
  const key = given.startsWith('p-') ? decoded(given.slice(2)) : null
  if (key !== null) return { state: 'parked', key }
  throw new OutboxError(
    'OUTBOX_INVALID_OPTION',
    expected('after', 'to be the `next` of a page of keys', given),
  )
}

// Others may have written longer ones than we do.
const longestKey = 8_192

/** null: it is not one of ours. */
function decoded(text: string): string | null {
  try {
    const key = decodeURIComponent(text.replaceAll('~', '%'))
    return name(longestKey)(key) === null ? key : null
  } catch {
    return null
  }
}
