import { createOutbox } from 'postbox'
import { beforeAll, expect, test } from 'vitest'
import { useDatabase } from '../support/database.ts'
import { eventually } from '../support/signals.ts'
import { createDeliveredTable } from './ledger.ts'
import { usePrograms } from './processes.ts'

const database = useDatabase()
const programs = usePrograms()

beforeAll(async () => {
  await createOutbox({ database: database.pool(), schema: database.schema }).migrate()
  await createDeliveredTable(database)
})

test('a message that kills five processes is dead, and the sixth does not run it', async () => {
  const { url, schema } = database
  const pool = database.pool({ max: 1 })
  const { id } = await createOutbox({ database: pool, schema }).publishNow('orders', 'killer')
  await pool.end()
  const trap = { point: 'before_handler', nth: 1, action: 'kill', whileRenewing: false } as const
  for (let death = 1; death <= 5; death++) {
    await using victim = programs.worker({ url, schema, trap })
    expect(await victim.ended).toMatchObject({ signal: 'SIGKILL' })
    const [row] = await database.query('select deliveries, attempts, failed_at from outbox')
    expect(row).toEqual({ deliveries: death, attempts: 0, failed_at: null })
    await database.query(`update outbox set leased_until = now() - interval '1 second'`)
  }

  await using sixth = programs.worker({ url, schema, trap })
  const dead = await eventually(
    async () => (await database.query('select id, failure_reason, attempts, deliveries from outbox_dead'))[0],
    { what: 'the dead letter' },
  )

  expect(dead).toEqual({ id, failure_reason: 'max_deliveries', attempts: 0, deliveries: 6 })
  expect(sixth.hasEnded).toBe(false)
  expect(await database.query('select from outbox')).toEqual([])
  expect(await database.query('select from delivered')).toEqual([])
})
