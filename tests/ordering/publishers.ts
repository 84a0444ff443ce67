// Publishers that commit and roll back by chance, many at once, and write nothing down: the log of the database tells in which order.
import { setTimeout as wait } from 'node:timers/promises'
import pg from 'pg'
import { createOutbox, type Outbox, type QueueMap, type Receipt } from 'postbox'
import { createRandom, type Random } from '../chaos/random.ts'
import { eventually } from '../support/signals.ts'
import { orderedQueue } from './consumer-order.ts'
import type { Told } from './history.ts'
import { randomKey } from './random-key.ts'

export interface Publishing {
  readonly url: string
  readonly schema: string
  readonly seed: number
  readonly publishers: number
  readonly keys: number
  /** The share of messages that are for later. */
  readonly delayed: number
  /** So many are committed, and a few more. */
  readonly messages: number
  readonly queues: QueueMap
  /** Whether there is room for more. */
  readonly hasRoom: () => boolean
}

export interface Published extends Told {
  /** Transactions that had to give way. */
  readonly deadlocks: number
}

interface Ledger {
  readonly committed: string[]
  readonly rolledBack: string[]
  deadlocks: number
}

interface Publisher extends Pick<Publishing, 'keys' | 'delayed'> {
  readonly client: pg.ClientBase
  readonly outbox: Outbox
  readonly random: Random
}

const deadlockDetected = '40P01'
const roomWithinMs = 120_000

export async function publish(publishing: Publishing): Promise<Published> {
  const { url, schema, queues, seed, keys, delayed } = publishing
  const pool = new pg.Pool({ connectionString: url, max: publishing.publishers })
  // Only where the test has failed, and the server is gone before they have ended.
  pool.on('connect', (client) => client.on('error', () => {}))
  const outbox: Outbox = createOutbox({ schema, queues })
  const ledger: Ledger = { committed: [], rolledBack: [], deadlocks: 0 }
  const one = async (_: unknown, index: number): Promise<void> => {
    const random = createRandom(seed + index)
    const client = await pool.connect()
    while (ledger.committed.length < publishing.messages) {
      await transaction({ client, outbox, random, keys, delayed }, ledger)
      await eventually(publishing.hasRoom, { what: 'room for more messages', withinMs: roomWithinMs })
    }
    client.release()
  }
  await Promise.all(Array.from({ length: publishing.publishers }, one))
  await pool.end()
  return ledger
}

async function transaction(publisher: Publisher, ledger: Ledger): Promise<void> {
  const { client, random } = publisher
  const kept: string[] = []
  const undone: string[] = []
  await client.query('begin')
  try {
    for (let steps = 1 + random.below(3); steps > 0; steps--) {
      if (random.isBelow(0.1)) undone.push(...(await publishAndUndo(publisher)))
      else kept.push(...(await publishSome(publisher)))
      await pause(random)
    }
  } catch (error) {
    await client.query('rollback')
    if ((error as { readonly code?: string }).code !== deadlockDetected) throw error
    ledger.deadlocks += 1
    ledger.rolledBack.push(...kept, ...undone)
    return
  }
  const isKept = random.isBelow(0.9)
  await client.query(isKept ? 'commit' : 'rollback')
  ledger.rolledBack.push(...undone, ...(isKept ? [] : kept))
  if (isKept) ledger.committed.push(...kept)
}

async function publishAndUndo(publisher: Publisher): Promise<readonly string[]> {
  const { client, random } = publisher
  await client.query('savepoint s')
  const undone = await publishSome(publisher)
  await pause(random)
  await client.query('rollback to savepoint s')
  return undone
}

/** One, or several at once, of keys in any order. */
async function publishSome(publisher: Publisher): Promise<readonly string[]> {
  const { client, outbox, random } = publisher
  const body = { isFollowOn: false }
  const options = () => randomOptions(publisher)
  if (random.isBelow(0.6)) return [await outbox.publish(client, orderedQueue, body, options())].map(idOf)
  const bodies = Array.from({ length: 1 + random.below(3) }, () => body)
  return (await outbox.publishMany(client, orderedQueue, bodies, options)).map(idOf)
}

function randomOptions({ random, keys, delayed }: Publisher): { key?: string; delayMs?: number } {
  return {
    ...(random.isBelow(0.95) && { key: randomKey(random, keys) }),
    ...(random.isBelow(delayed) && { delayMs: 1 + random.below(200) }),
  }
}

function idOf({ id }: Receipt): string {
  return id
}

/** Nothing half of the time, else some milliseconds, and sometimes long enough for many others to commit. */
async function pause(random: Random): Promise<void> {
  if (random.isBelow(0.02)) await wait(100)
  else if (random.isBelow(0.5)) await wait(random.below(15))
}
