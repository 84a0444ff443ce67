import type { Database } from './adapters/executor.ts'
import type { BodyRules } from './core/body-rules.ts'
import { assertMessageId } from './core/dead-letter-options.ts'
import {
  type DeliveredListOptions,
  deliveredCursorText,
  resolveDeliveredPage,
} from './core/delivered-options.ts'
import { type FailureHistory, historyFrom } from './core/failure-history.ts'
import type { Headers } from './core/headers.ts'
import { type Purged, type PurgeOptions, resolvePurge } from './core/purge-options.ts'
import { purgeAll } from './runtime/purge.ts'
import { dateFrom } from './sql/columns.ts'
import { getDelivered } from './sql/get-delivered.ts'
import { type DeliveredRow, listDelivered } from './sql/list-delivered.ts'
import type { Names } from './sql/names.ts'
import { purgeDelivered } from './sql/purge-delivered.ts'
import { orSchemaMissing } from './sql/schema-missing.ts'
import { storedMessage } from './stored-message.ts'

/** A message that was delivered, and kept for audit. */
export interface DeliveredMessage {
  readonly id: string
  readonly queue: string
  readonly key: string | null
  readonly timerId: string | null
  /** Decoded, not validated; `undefined` when the bytes are not what their content type says. */
  readonly body: unknown
  readonly headers: Headers
  readonly correlationId: string
  /** Runs that failed before the one that did not. */
  readonly attempts: number
  readonly deliveries: number
  readonly createdAt: Date
  readonly generation: number | null
  /** By the database's clock, when its acknowledgement was written. */
  readonly deliveredAt: Date
  /** What happened before its last replay. */
  readonly failureHistory: FailureHistory
  /** The body's bytes as they are stored. */
  readonly raw: Uint8Array
}

export interface DeliveredPage {
  readonly items: readonly DeliveredMessage[]
  /** Where the next page begins, for `after`; null: this was the last. */
  readonly next: string | null
}

/** The delivered messages of an outbox whose option `delivered` is (or was) `'table'`. */
export interface DeliveredMessages {
  /** Newest first. Pages follow each other without gaps or repetitions, whatever is added meanwhile. */
  list(options?: DeliveredListOptions): Promise<DeliveredPage>
  /** The newest of that id. */
  get(id: string): Promise<DeliveredMessage | null>
  /** Deletes what was delivered long ago, oldest first, in batches of five thousand. */
  purge(options: PurgeOptions): Promise<Purged>
}

export interface DeliveredParts {
  readonly database: () => Database
  readonly outbox: BodyRules & { readonly names: Names }
}

export function createDelivered({ database, outbox }: DeliveredParts): DeliveredMessages {
  const { names } = outbox
  const asked = async <T>(answer: () => Promise<T>): Promise<T> => {
    try {
      return await answer()
    } catch (error) {
      throw orSchemaMissing(error, names.delivered)
    }
  }
  return Object.freeze({
    async list(options) {
      const page = resolveDeliveredPage(options)
      const rows = await asked(() => database().run(listDelivered(names, page)))
      return pageOf(outbox, rows, page.limit)
    },
    async get(id) {
      assertMessageId(id)
      const [row] = await asked(() => database().run(getDelivered(names, id)))
      return row === undefined ? null : deliveredOf(outbox, row)
    },
    async purge(options) {
      const resolved = resolvePurge(options)
      const { olderThanMs } = resolved
      return asked(() =>
        purgeAll(database(), (limit) => purgeDelivered(names, { olderThanMs, limit }), resolved),
      )
    },
  } satisfies DeliveredMessages)
}

/** One row more than the page holds tells that another page follows. */
function pageOf(rules: BodyRules, rows: readonly DeliveredRow[], limit: number): DeliveredPage {
  const shown = rows.slice(0, limit)
  const last = rows.length > limit ? shown.at(-1) : undefined
  return {
    items: shown.map((row) => deliveredOf(rules, row)),
    next: last === undefined ? null : deliveredCursorText({ ...last, deliveredMicros: last.micros }),
  }
}

function deliveredOf(rules: BodyRules, row: DeliveredRow): DeliveredMessage {
  return {
    ...storedMessage(rules, row),
    deliveredAt: dateFrom(row.delivered),
    failureHistory: historyFrom(row.history),
  }
}
