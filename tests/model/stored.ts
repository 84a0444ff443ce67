// What a store holds, in the model's words.
import { compareSeq } from '../../packages/postbox/src/core/batching.ts'
import type { MessageRow } from '../../packages/postbox/src/sql/claim-messages.ts'
import type {
  StoredDeadLetter,
  StoredDelivered,
  StoredMessage,
  StoreSnapshot,
} from '../support/store-snapshot.ts'
import {
  type Cycle,
  type DeadLetter,
  type Death,
  type Delivered,
  type Draft,
  type History,
  hoursFrom,
  type KeptMessage,
  type Letter,
  type Message,
  type Queue,
  type State,
} from './terms.ts'

/** Ids and tokens are UUIDs that end in a number. */
export function uuidOf(number: number): string {
  return `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`
}

export function numberOf(uuid: string): number {
  return Number(uuid.slice(-12))
}

/** Body and headers that tell which draft they are of; every other draft has no headers. */
export function contentOf({ content }: Pick<Draft, 'content'>) {
  return {
    body: Buffer.from(`draft ${content}`),
    headers: content % 2 === 0 ? null : { draft: String(content) },
  }
}

/** Which draft it is; -1: body and headers are not of the same. */
function contentIn(base64: string, headers: unknown): number {
  const content = Number(Buffer.from(base64, 'base64').toString().replace('draft ', ''))
  const expected = contentOf({ content }).headers
  return JSON.stringify(headers) === JSON.stringify(expected) ? content : -1
}

/** Seqs may have gaps and only their order is promised, so messages are numbered in the order in which they come to be seen. */
export class Places {
  readonly #places = new Map<string, number>()
  readonly #seqs = ['0']

  /** Some of these may be known. */
  learn(seqs: readonly string[]): void {
    const unknown = seqs.filter((seq) => !this.#places.has(seq))
    for (const seq of unknown.sort(compareSeq)) {
      const last = this.#seqs.at(-1)!
      if (compareSeq(seq, last) < 0) throw new Error(`a new message got seq ${seq}, after ${last} was given`)
      this.#places.set(seq, this.#seqs.push(seq) - 1)
    }
  }

  of(seq: string): number {
    const place = this.#places.get(seq)
    if (place === undefined) throw new Error(`nobody was told of a message of seq ${seq}`)
    return place
  }

  /** The last place that is not behind this seq, which nobody may have. */
  upTo(seq: string): number {
    return this.#seqs.findLastIndex((known) => compareSeq(known, seq) <= 0)
  }

  seqOf(place: number): string {
    return this.#seqs[place]!
  }
}

export function stateIn(snapshot: StoreSnapshot, places: Places): Pick<State, 'now' | 'messages' | 'dead'> {
  return {
    now: snapshot.now,
    messages: snapshot.messages.map(
      (row): Message => ({
        ...letterOf(row),
        place: places.of(row.seq),
        timer: row.timerId,
        firedTimer: row.firedTimerId,
        dueAt: row.dueAt,
        lease: row.leaseToken === null ? null : { claim: numberOf(row.leaseToken), until: row.leasedUntil! },
        death: row.failedAt === null ? null : deathOf(row),
        key: row.key ?? row.laterKey,
        isToJoin: row.laterKey !== null,
        isParked: row.parkedAt !== null,
        afterDead: row.afterDead === null ? null : numberOf(row.afterDead),
      }),
    ),
    dead: snapshot.dead.map(
      (row): DeadLetter => ({
        ...letterOf(row),
        place: places.of(row.originalSeq),
        timer: row.timerId,
        death: deathOf(row),
      }),
    ),
  }
}

/** What a claim tells of a message. */
export function toldBy(row: MessageRow, places: Places, now: number): Delivered {
  const hours = (time: string | null): number | null => hoursFrom(now, time === null ? null : Number(time))
  return {
    place: places.of(row.seq),
    id: numberOf(row.id),
    content: contentIn(row.body, row.headers === null ? null : JSON.parse(row.headers)),
    key: row.key,
    timer: row.timer,
    attempts: Number(row.attempts),
    deliveries: Number(row.deliveries),
    isSuspect: row.suspect === 'true',
    generation: row.generation === null ? null : Number(row.generation),
    createdAt: hours(row.created)!,
    dueAt: hours(row.due),
    firstAttemptAt: hours(row.first),
  }
}

export function keptIn(row: StoredDelivered, places: Places): KeptMessage {
  const { key, attempts, deliveries, generation } = row
  return {
    ...{ key, attempts, deliveries, generation },
    place: places.of(row.originalSeq),
    id: numberOf(row.id),
    content: contentIn(row.body, row.headers),
    queue: row.queue as Queue,
    timer: row.timerId,
    lives: ((row.failureHistory as StoredHistory | null)?.cycles.length ?? 0) + 1,
  }
}

function letterOf(row: StoredMessage | StoredDeadLetter): Letter {
  const { key, createdAt, deliveries, attempts, firstAttemptAt, lastAttemptAt, lastError, generation } = row
  return {
    ...{ key, createdAt, deliveries, attempts, firstAttemptAt, lastAttemptAt, lastError, generation },
    id: numberOf(row.id),
    content: contentIn(row.body, row.headers),
    queue: row.queue as Queue,
    history: row.failureHistory === null ? null : historyOf(row.failureHistory as StoredHistory),
  }
}

function deathOf({ failedAt, failureReason }: StoredMessage | StoredDeadLetter): Death {
  return { at: failedAt!, reason: failureReason! }
}

/** As it is written: core/failure-history.ts reads it leniently. */
interface StoredHistory {
  readonly dropped: number
  readonly cycles: readonly {
    readonly attempts: number
    readonly deliveries: number
    readonly firstAttemptAt: number | null
    readonly lastAttemptAt: number | null
    readonly failedAt: number
    readonly reason: string
    readonly error: string | null
    readonly replayedBy: string
    readonly generationBefore: number | null
    readonly generationAfter: number | null
  }[]
}

function historyOf({ dropped, cycles }: StoredHistory): History {
  return {
    dropped,
    cycles: cycles.map(
      ({ failedAt, reason, error, generationBefore, ...cycle }): Cycle => ({
        ...{ attempts: cycle.attempts, deliveries: cycle.deliveries },
        firstAttemptAt: cycle.firstAttemptAt,
        lastAttemptAt: cycle.lastAttemptAt,
        lastError: error,
        generation: generationBefore,
        death: { at: failedAt, reason },
        replayedBy: cycle.replayedBy,
        generationAfter: cycle.generationAfter,
      }),
    ),
  }
}
