// What a settlement reads, as counts, whatever the planner believes of the table: its own rows, and no others. Claims are in plans.test.ts.
import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { beforeAll, expect, test } from 'vitest'
import type { Draft } from '../../packages/postbox/src/core/message.ts'
import { buryDead } from '../../packages/postbox/src/sql/bury-dead.ts'
import { deleteAcked } from '../../packages/postbox/src/sql/delete-acked.ts'
import { deleteWithFollowOns } from '../../packages/postbox/src/sql/delete-with-follow-ons.ts'
import { discardDead } from '../../packages/postbox/src/sql/discard-dead.ts'
import { extendLeases, holdsLeases } from '../../packages/postbox/src/sql/extend-leases.ts'
import { fenceTransaction } from '../../packages/postbox/src/sql/fence-transaction.ts'
import { resolveNames } from '../../packages/postbox/src/sql/names.ts'
import { parkDead, quarantineDead } from '../../packages/postbox/src/sql/quarantine-dead.ts'
import { releaseLeases } from '../../packages/postbox/src/sql/release-leases.ts'
import { rescheduleRetried } from '../../packages/postbox/src/sql/reschedule-retried.ts'
import { snoozeMessages } from '../../packages/postbox/src/sql/snooze-messages.ts'
import type { Statement } from '../../packages/postbox/src/sql/statement.ts'
import { useDatabase } from '../support/database.ts'
import { beliefs, useFreshTable } from '../support/plan.ts'
import { fill } from '../support/sessions.ts'
import { readStatement } from '../support/statement-plan.ts'

const database = useDatabase()
let pool: pg.Pool

const rows = 20_000
const settled = 200

beforeAll(() => {
  pool = database.pool()
})

useFreshTable(database, () => pool)

const names = resolveNames({ schema: database.schema, table: 'outbox' })

/** All that is written of rows that several claims have leased. */
function statementsOf(fences: readonly { seq: string; token: string }[]): readonly Statement<unknown>[] {
  const given = fences.map((fence) => ({
    ...fence,
    ...{ delayMs: 5, deliveriesBefore: 0, leaseMs: 60_000, followOns: [] as Draft[] },
    ...{ reason: 'rejected', error: 'no', attempts: 1, isNoted: true },
  }))
  return [
    ...(['delete', 'table'] as const).flatMap((delivered) => [
      deleteAcked(names, given, { delivered }),
      deleteAcked(names, given, { delivered, isQuick: true }),
      deleteWithFollowOns(names, { settled: given, wake: 'always', delivered }),
    ]),
    ...[true, false].flatMap((isNamed) => [
      rescheduleRetried(names, given, isNamed),
      snoozeMessages(names, given, isNamed),
      releaseLeases(names, given, isNamed),
    ]),
    ...[buryDead, discardDead, quarantineDead, parkDead].map((bury) => bury(names, given)),
    ...[extendLeases(names, given), holdsLeases(names, given), fenceTransaction(names, given)],
  ]
}

const states = {
  ...beliefs,
  async 'that was vacuumed while it held five fresh rows at its end'() {
    await fill(database, { rows })
    await database.query(`delete from outbox where seq <= ${rows - 5}`)
    await database.query('vacuum analyze outbox')
    await fill(database, { rows })
  },
}

test.each(Object.entries(states))(
  'settlements look at their own rows only, on a table %s',
  async (_, believe) => {
    await believe(database, rows)
    const tokens = [randomUUID(), randomUUID()]
    const fences = await database.query<{ seq: string; token: string }>(
      `update outbox as m set lease_token = ($1::uuid[])[1 + m.seq % 2], leased_until = now() + interval '1 hour'
      where m.seq in (select seq from outbox where failed_at is null and due_at is null order by seq desc limit ${settled})
     returning seq::text, lease_token::text as token`,
      [tokens],
    )
    expect(fences).toHaveLength(settled)

    const looked: Record<string, number> = {}
    for (const statement of statementsOf(fences.toSorted((a, b) => Number(a.seq) - Number(b.seq)))) {
      const client = await pool.connect()
      try {
        await client.query('begin')
        const reading = await readStatement(client, statement)
        // A renewal finds its rows, and then writes them by where they lie; a death is noted on the next of the key.
        if (reading.rows > 2 * settled) looked[`${statement.name} ${reading.scans.join()}`] = reading.rows
      } finally {
        await client.query('rollback')
        client.release()
      }
    }
    expect(looked).toEqual({})
  },
)
