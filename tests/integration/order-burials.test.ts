// Ordered queues: what it costs to note a death on the next message of a key, when there is none.
import { expect, test } from 'vitest'
import { buryDead } from '../../packages/postbox/src/sql/bury-dead.ts'
import { discardDead } from '../../packages/postbox/src/sql/discard-dead.ts'
import { resolveNames } from '../../packages/postbox/src/sql/names.ts'
import { quarantineDead } from '../../packages/postbox/src/sql/quarantine-dead.ts'
import { useBench } from '../support/decisions-bench.ts'

const bench = useBench()
const { database } = bench

const burying = { buryDead, quarantineDead, discardDead }
const cases = [1, 3].flatMap((keys) =>
  (['buryDead', 'quarantineDead', 'discardDead'] as const).map((how) => [how, keys] as const),
)

test.each(cases)('a burial (%s) does not walk over the rows of %i other keys', async (how, keys) => {
  const fill = (rows: string) =>
    database.query(`insert into outbox (id, queue, key, body, lease_token, leased_until)
      select gen_random_uuid(), 'orders', ${rows}`)
  await fill(`'rare', '1', gen_random_uuid(), now() + interval '1 minute'`)
  await fill(`'often' || n % ${keys}, '1', null, null from generate_series(1, 20000) as n`)
  await database.query('analyze outbox')
  const [head] = await database.query(
    `select seq::text as seq, lease_token::text as token from outbox where key = 'rare'`,
  )
  const fence = { seq: String(head?.['seq']), token: String(head?.['token']) }
  const burial = { ...fence, reason: 'rejected', error: null, attempts: 1, isNoted: true }
  const names = resolveNames({ schema: database.schema, table: 'outbox' })
  const { text, values } = burying[how](names, [burial])
  const { rows } = await bench.pool().query(`explain (analyze, timing off, costs off) ${text}`, [...values])
  const plan = rows.map((row) => String(row['QUERY PLAN'])).join('\n')

  const removed = [...plan.matchAll(/Rows Removed by Filter: (\d+)/g)].map(([, count]) => Number(count))
  expect(Math.max(0, ...removed), plan).toBeLessThan(100)
})
