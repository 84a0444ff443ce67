import { createOutbox } from 'postbox'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { recogniseDatabase } from '../../packages/postbox/src/adapters/recognise.ts'
import type { Told } from '../../packages/postbox/src/core/events.ts'
import type { Lease } from '../../packages/postbox/src/core/lease.ts'
import type { DeadReason } from '../../packages/postbox/src/core/settlement.ts'
import { createClaimer } from '../../packages/postbox/src/runtime/claimer.ts'
import { systemClock } from '../../packages/postbox/src/runtime/clock.ts'
import { createLane } from '../../packages/postbox/src/runtime/lane.ts'
import { createSettler } from '../../packages/postbox/src/runtime/settler.ts'
import { resolveNames } from '../../packages/postbox/src/sql/names.ts'
import { useDatabase } from '../support/database.ts'
import { collector, eventually } from '../support/signals.ts'
import { type Sent, watchStatements } from '../support/statements.ts'

const database = useDatabase()

beforeAll(async () => {
  await createOutbox({ database: database.pool({ max: 1 }), schema: database.schema }).migrate()
})

const fill = (count: number): Promise<unknown> =>
  database.query(
    `insert into outbox (id, queue, body)
     select gen_random_uuid(), 'orders', n::text::bytea from generate_series(1, $1) as n`,
    [count],
  )

const rows = (): Promise<{ body: string; leased: boolean }[]> =>
  database.query(
    `select convert_from(body, 'utf8') as body, lease_token is not null as leased from outbox order by seq`,
  )

/** How many messages a statement was to bury. */
const sizeOf = ({ values }: Sent): number => JSON.parse(String(values[0])).length

describe('a burial', () => {
  /** The parts that claim and settle, on a connection of their own. */
  async function settling() {
    const pool = database.pool()
    const statements = watchStatements(pool, database.schema)
    const told = collector<Told>('events')
    const teller = { tell: told.add, isHeard: true }
    const names = resolveNames({ schema: database.schema, table: 'outbox' })
    const lane = createLane({ database: recogniseDatabase(pool)!, statementTimeoutMs: 10_000 })
    const shared = { lane, names, clock: systemClock, teller }
    const modes = { deadLetters: 'table', delivered: 'delete' } as const
    const rules = { wake: 'always', ...modes, giveUp: new AbortController().signal } as const
    const settler = createSettler({ ...shared, ...rules, changed: () => {} })
    onTestFinished(async () => {
      await lane.close()
      await pool.end()
      await database.query('delete from outbox')
      await database.query('delete from outbox_dead')
    })
    const demands = [{ queue: 'orders', room: 1_000, leaseMs: 30_000 }]
    const [found] = await createClaimer(shared).claim(demands, 'sweep')
    const leases = found!.held.map(({ lease }) => lease)
    const bury = (lease: Lease, reason: DeadReason = 'rejected'): Promise<unknown> => {
      const { attempt: attempts } = lease
      const burial = {
        write: 'bury',
        lease,
        reason,
        attempts,
        error: 'Error: no',
        thrown: new Error('no'),
      } as const
      return new Promise((done) => settler.settle(burial, { maxBatch: 1_000, durationMs: 1 }, done))
    }
    return { leases, bury, settler, statements, told }
  }

  const dead = (): Promise<{ seq: string; reason: string }[]> =>
    database.query(
      'select original_seq::text as seq, failure_reason as reason from outbox_dead order by original_seq',
    )

  test('of five hundred messages is one statement, and keeps everything of them', async () => {
    await database.query(
      `insert into outbox (id, queue, key, timer_id, body, headers, generation, created_at, attempts)
       select gen_random_uuid(), 'orders', 'k' || n, 't' || n, n::text::bytea, '{"a":"b"}', n, now() - interval '1 h', 2
         from generate_series(1, 500) as n`,
    )
    const kept = 'id, queue, key, timer_id, body, headers, generation, created_at, deliveries'
    const { leases, bury, settler, statements } = await settling()
    const before = await database.query(
      `select seq, ${kept.replace('timer_id', 'fired_timer_id as timer_id')}, attempts from outbox order by seq`,
    )

    await Promise.all(leases.map((lease) => bury(lease)))

    expect(statements.named('bury_dead').map(sizeOf)).toEqual([500])
    expect(settler.settled).toMatchObject({ dead: 500, lost: 0 })
    expect(await rows()).toEqual([])
    // The run that led here counts.
    expect(
      await database.query(
        `select original_seq as seq, ${kept}, attempts - 1 as attempts from outbox_dead order by original_seq`,
      ),
    ).toEqual(before)
    expect(
      await database.query(
        'select distinct failure_reason, last_error, failed_at = last_attempt_at as stamped from outbox_dead',
      ),
    ).toEqual([{ failure_reason: 'rejected', last_error: 'Error: no', stamped: true }])
  })

  test('by whoever has lost the lease moves nothing, and says so', async () => {
    await fill(3)
    const { leases, bury, settler, told } = await settling()
    const [first, second, third] = leases
    const stale = { ...second!, token: '00000000-0000-0000-0000-000000000001' }

    await Promise.all([bury(first!), bury(stale), bury(third!)])

    expect(settler.settled).toMatchObject({ dead: 2, lost: 1 })
    expect((await dead()).map(({ seq }) => seq)).toEqual([first!.seq, third!.seq])
    expect(await rows()).toMatchObject([{ body: '2', leased: true }])
    expect(told.all.filter(({ kind }) => kind === 'lease_lost')).toMatchObject([
      { seq: second!.seq, phase: 'terminal' },
    ])
  })

  test('that the dead letters refuse quarantines the message where it is, and buries the others at once', async () => {
    await fill(40)
    await database.query(
      `alter table outbox_dead add constraint good check (failure_reason <> 'invalid_body')`,
    )
    const { leases, bury, settler, told } = await settling()

    const buried = leases.map((lease, index) => bury(lease, index % 10 === 0 ? 'invalid_body' : 'rejected'))
    await eventually(async () => (await dead()).length === 36, { what: 'the others to be buried' })
    const before = settler.settled.dead
    await Promise.all(buried)
    await database.query('alter table outbox_dead drop constraint good')

    expect(before).toBe(36)
    expect(settler.settled).toMatchObject({ dead: 40, lost: 0 })
    expect((await rows()).map(({ body, leased }) => [body, leased])).toEqual(
      ['1', '11', '21', '31'].map((body) => [body, false]),
    )
    expect(told.all.filter(({ kind }) => kind === 'settle_failed').length).toBe(12)
  })
})
