import type pg from 'pg'
import type { Body, Driver, DriverInput } from './driver.ts'
import { Pool } from './peer.ts'

/**
 * The least SQL that does the job, if nothing ever goes wrong and there is one consumer: insert, read in the order of the key, delete the range. No lease, no retry, no
 * wake-up. No queue on a table can be faster for long; it is here as the limit, and its insert as the "plain insert" of an application.
 */
export function openFloor({ url, settings }: DriverInput): Driver {
  const batch = Number(settings['batch'] ?? 100)
  const pool: pg.Pool = new Pool({ connectionString: url, max: 4 })
  let isOpen = true
  let consumed: Promise<void> | undefined
  const consumeAll = async (handler: (body: Body) => void | Promise<void>): Promise<void> => {
    const read = 'select seq, body from floor where seq > $1 order by seq limit $2'
    for (let last = '0'; isOpen; ) {
      const { rows } = await pool.query<{ seq: string; body: string }>(read, [last, batch])
      for (const { body } of rows) await handler(JSON.parse(body) as Body)
      if (rows.length === 0) continue
      const first = rows[0]!.seq
      last = rows.at(-1)!.seq
      await pool.query('delete from floor where seq between $1 and $2', [first, last])
    }
  }
  return {
    async setup() {
      await pool.query(
        'create table floor (seq bigint generated always as identity primary key, body text not null)',
      )
    },
    async openPublisher() {},
    async publishMany(bodies) {
      const texts = bodies.map((body) => JSON.stringify(body))
      await pool.query('insert into floor (body) select unnest($1::text[])', [texts])
    },
    async publishOne(client, body) {
      await client.query('insert into floor (body) values ($1)', [JSON.stringify(body)])
    },
    publishTimers: () => Promise.reject(new Error('the floor has no timers')),
    async openConsumer() {},
    async consume(handler) {
      consumed = consumeAll(handler)
    },
    async [Symbol.asyncDispose]() {
      isOpen = false
      await consumed
      await pool.end()
    },
  }
}
