import type pg from 'pg'
import { type Body, bodiesOf, bodyOf, type Driver } from './driver.ts'
import { Pool } from './peer.ts'
import type { Application, PublishEachInput, PublishManyInput, Spent } from './protocol.ts'
import { Stretch } from './stretch.ts'

/** One connection, `slice` messages a transaction. */
export async function publishMany(driver: Driver, { messages, slice }: PublishManyInput): Promise<Spent> {
  await driver.openPublisher(1)
  return timed(messages, async (see) => {
    for (let from = 0; from < messages; from += slice) {
      see(from)
      await driver.publishMany(bodiesOf(from, Math.min(slice, messages - from)))
    }
  })
}

export async function scheduleMany(
  driver: Driver,
  { messages, slice, delayMs }: PublishManyInput & { readonly delayMs: number },
): Promise<void> {
  await driver.openPublisher(1)
  const at = Date.now() + delayMs
  for (let from = 0; from < messages; from += slice)
    await driver.publishTimers(bodiesOf(from, Math.min(slice, messages - from)).map(({ n }) => bodyOf(n, at)))
}

/** As many connections as committers, each with a message per transaction, one after the other. */
export async function publishEach(
  driver: Driver,
  application: Application,
  { messages, committers }: PublishEachInput,
): Promise<Spent> {
  await driver.openPublisher(committers)
  const pool: pg.Pool = new Pool({ connectionString: application.url, max: committers })
  const clients = await Promise.all(Array.from({ length: committers }, () => pool.connect()))
  const commit = committerOf(driver, application)
  let next = 0
  let done = 0
  const spent = await timed(messages, async (see) => {
    const commitSome = async (client: pg.PoolClient): Promise<void> => {
      while (next < messages) {
        await commit(client, bodyOf(next++))
        see(++done)
      }
    }
    await Promise.all(clients.map(commitSome))
  })
  for (const client of clients) client.release()
  await pool.end()
  return spent
}

type Commit = (client: pg.ClientBase, body: Body) => Promise<void>

/** A contender that commits by itself is spared a transaction in which nothing happens. */
export function committerOf(driver: Driver, { isTransactional }: Application): Commit {
  if (!isTransactional) return (client, body) => driver.publishOne(client, body)
  return async (client, body) => {
    await client.query('begin')
    await driver.publishOne(client, body)
    await client.query('commit')
  }
}

async function timed(messages: number, work: (see: (done: number) => void) => Promise<void>): Promise<Spent> {
  const cpuBefore = process.cpuUsage()
  const stretch = new Stretch(messages, performance.now())
  await work((done) => stretch.see(done, performance.now()))
  const perSecond = stretch.perSecond(performance.now())
  const { user, system } = process.cpuUsage(cpuBefore)
  return { perSecond, nodeCpuMs: (user + system) / 1_000 }
}
