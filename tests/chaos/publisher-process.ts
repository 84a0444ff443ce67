// A publisher: random transactions on demand, each from its seed. It ends by itself after SIGTERM.
import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import pg from 'pg'
import { createOutbox } from 'postbox'
import { followCommands, readOrder, report } from './child.ts'
import { wakeQueues } from './protocol.ts'
import { createRandom, type Random } from './random.ts'

interface Outcome {
  readonly committed: readonly string[]
  readonly rolledBack: readonly string[]
  readonly announceable: number
}

const { url, schema, name } = readOrder<{ url: string; schema: string; name: string }>()
const address = new URL(url)
address.searchParams.set('application_name', name)
const pool = new pg.Pool({ connectionString: address.href, max: 4, idleTimeoutMillis: 0 })
const outbox = createOutbox({ schema })

const channel = followCommands((command) => {
  if (command.kind === 'publish') void round(command.seed)
})
report({ kind: 'ready' })
await once(process, 'SIGTERM')
await pool.end()
channel.leave()

/** One or two rows of transactions at once, after a moment: the sleepers are somewhere on their way to sleep by then, or asleep. */
async function round(seed: number): Promise<void> {
  const random = createRandom(seed)
  if (random.isBelow(0.2)) await wait(random.below(80))
  else await pause(random)
  const seeds = Array.from({ length: 1 + random.below(2) }, () => random.below(2 ** 32))
  const outcomes = (await Promise.all(seeds.map((each) => transactions(createRandom(each))))).flat()
  report({
    kind: 'published',
    seed,
    committed: outcomes.flatMap(({ committed }) => committed),
    rolledBack: outcomes.flatMap(({ rolledBack }) => rolledBack),
    announceable: outcomes.reduce((sum, { announceable }) => sum + announceable, 0),
  })
}

/** One to three, one after the other: the later ones find the sleepers at work. */
async function transactions(random: Random): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = []
  for (let left = 1 + random.below(3); left > 0; left--) {
    outcomes.push(await transaction(random))
    await pause(random)
  }
  return outcomes
}

async function transaction(random: Random): Promise<Outcome> {
  const client = await pool.connect()
  const kept: string[] = []
  const undone: string[] = []
  const queues = new Set<string>()
  const publish = async (): Promise<readonly string[]> => {
    const queue = random.pick(wakeQueues)
    const bodies = Array.from({ length: 1 + random.below(2) }, (_, index) => index)
    const receipts = await outbox.publishMany(client, queue, bodies)
    queues.add(queue)
    return receipts.map(({ id }) => id)
  }
  await client.query('begin')
  for (let step = 1 + random.below(2); step > 0; step--) {
    await pause(random)
    if (random.isBelow(0.3)) {
      const before = [...queues]
      await client.query('savepoint s')
      undone.push(...(await publish()))
      await pause(random)
      await client.query('rollback to savepoint s')
      queues.clear()
      for (const queue of before) queues.add(queue)
    } else {
      kept.push(...(await publish()))
    }
  }
  await pause(random)
  const isCommitted = random.isBelow(0.85)
  await client.query(isCommitted ? 'commit' : 'rollback')
  client.release()
  return isCommitted
    ? { committed: kept, rolledBack: undone, announceable: queues.size }
    : { committed: [], rolledBack: [...kept, ...undone], announceable: 0 }
}

/** Nothing half of the time; else up to five milliseconds. */
async function pause(random: Random): Promise<void> {
  if (random.isBelow(0.5)) await wait(random.below(6))
}
