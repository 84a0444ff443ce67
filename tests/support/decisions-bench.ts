// An outbox whose handlers are given by the test, and everything that it tells.
import type pg from 'pg'
import { createOutbox, type OutboxEvent, type OutboxOptions } from 'postbox'
import { beforeAll, beforeEach } from 'vitest'
import { type TestDatabase, useDatabase } from './database.ts'
import { type Collector, collector } from './signals.ts'

export type KindOf<K extends OutboxEvent['kind']> = Extract<OutboxEvent, { kind: K }>

export interface Told {
  readonly events: Collector<OutboxEvent>
  /** The first event of a kind, already there or to come. */
  first<K extends OutboxEvent['kind']>(kind: K): Promise<KindOf<K>>
  /** So many events of a kind. */
  take<K extends OutboxEvent['kind']>(kind: K, count: number): Promise<readonly KindOf<K>[]>
  of<K extends OutboxEvent['kind']>(kind: K): readonly KindOf<K>[]
}

/** What an outbox tells: pass `onEvent`. */
function listening(): Told & { onEvent(event: OutboxEvent): void } {
  const events = collector<OutboxEvent>('events')
  const kinds = new Map<string, Collector<OutboxEvent>>()
  const kindOf = (kind: string): Collector<OutboxEvent> => {
    const known = kinds.get(kind) ?? collector<OutboxEvent>(`events "${kind}"`)
    kinds.set(kind, known)
    return known
  }
  return {
    events,
    onEvent(event) {
      events.add(event)
      kindOf(event.kind).add(event)
    },
    of: (kind) => [...kindOf(kind).all] as never,
    first: async (kind) => (await kindOf(kind).take(1))[0] as never,
    take: async (kind, count) => (await kindOf(kind).take(count)) as never,
  }
}

export interface Bench {
  readonly database: TestDatabase
  pool(): pg.Pool
  /** An outbox over the file's schema, with what it tells. */
  outboxOf(options?: OutboxOptions): ReturnType<typeof createOutbox> & { readonly told: Told }
  /** What waits, and what is dead, as rows. */
  messages(): Promise<readonly Row[]>
  dead(): Promise<readonly Row[]>
}

export type Row = Readonly<Record<string, unknown>>

/** A schema for this file with the tables of an outbox, empty before each test. */
export function useBench(): Bench {
  const database = useDatabase()
  let pool: pg.Pool
  beforeAll(async () => {
    pool = database.pool({ max: 12 })
    await createOutbox({ database: pool, schema: database.schema, logger: false }).migrate()
  })
  beforeEach(async () => {
    await database.query('delete from outbox')
    await database.query('delete from outbox_dead')
  })
  return {
    database,
    pool: () => pool,
    outboxOf(options = {}) {
      const told = listening()
      const given = { database: pool, schema: database.schema, logger: false, onEvent: told.onEvent } as const
      return { ...createOutbox({ ...given, ...options }), told }
    },
    messages: () => database.query('select * from outbox order by seq'),
    dead: () => database.query('select * from outbox_dead order by dead_seq'),
  }
}
