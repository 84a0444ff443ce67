// Publishers and consumers at once, processes that are killed and that stand still, until everything is delivered; and what the log says of it.
import { randomBytes } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import pg from 'pg'
import { createOutbox, type QueueDefinition, type SubscribeOptions } from 'postbox'
import { expect } from 'vitest'
import { type Child, expectEnd, type Programs } from '../chaos/processes.ts'
import { createRandom, type Random } from '../chaos/random.ts'
import { type Chances, orderedQueue } from './consumer-order.ts'
import type { History } from './history.ts'
import { type LoggedServer, openCommitLog } from './logged-server.ts'
import { type Published, publish } from './publishers.ts'
import { createHistoryReader, createHistoryTable, type HistoryReader } from './read-history.ts'

export interface Scenario {
  readonly seed: number
  readonly publishers: number
  readonly consumers: number
  readonly keys: number
  readonly messages: number
  readonly kills: number
  /** Processes that stand still for one and a half leases, up to two. */
  readonly stalls: number
  readonly queue: QueueDefinition
  /** What can be written as JSON, of those of a subscription. */
  readonly options: SubscribeOptions & { readonly leaseMs: number }
  readonly chances: Chances
  /** How many, of all that are published, are for later. They take their place in their key when they get the key. */
  readonly delayed: number
  /** Publishers wait while there are so many. */
  readonly mostWaiting: number
  readonly withinMs: number
  readonly say?: (line: string) => void
}

export interface Played {
  readonly history: History
  readonly deadlocks: number
}

interface Stage {
  readonly url: string
  readonly schema: string
  readonly scenario: Scenario
  readonly programs: Programs
  readonly random: Random
  readonly children: Child[]
  readonly stopped: Set<Child>
  /** Each ends when its process goes on. */
  readonly standstills: Promise<void>[]
  mark(what: 'killing' | 'stopping' | 'continuing', child: Child): Promise<void>
}

const readEveryMs = 100
const retryMs = 20

/** Plays it in a schema of its own on the server. */
export async function play(server: LoggedServer, programs: Programs, scenario: Scenario): Promise<Played> {
  const { url } = server
  const schema = `ordering_${randomBytes(4).toString('hex')}`
  const pool = new pg.Pool({ connectionString: url, max: 2 })
  pool.on('error', () => {})
  await createTables(pool, schema)
  await using log = await openCommitLog(url)
  const reader = createHistoryReader(schema)
  const stage = createStage({ url, schema, scenario, programs, pool })
  for (let left = scenario.consumers; left > 0; left--) startConsumer(stage)
  const hasRoom = (): boolean => reader.waiting < scenario.mostWaiting
  const queues = { [orderedQueue]: scenario.queue }
  const publishing = publish({ ...scenario, url, schema, queues, hasRoom })
  const read = async (): Promise<void> => reader.add(await log.read())
  await stir(stage, { reader, read, publishing })
  for (const child of stage.children) await expectEnd(child)
  await read()
  await pool.end()
  const { deadlocks, ...told } = await publishing
  return { history: reader.history(told), deadlocks }
}

async function createTables(pool: pg.Pool, schema: string): Promise<void> {
  await pool.query(`create schema ${schema}`)
  await createOutbox({ database: pool, schema }).migrate()
  await pool.query(createHistoryTable.replace('history', `${schema}.history`))
}

function createStage(
  given: Pick<Stage, 'url' | 'schema' | 'scenario' | 'programs'> & { readonly pool: pg.Pool },
): Stage {
  const { pool, ...known } = given
  return {
    ...known,
    random: createRandom(known.scenario.seed),
    children: [],
    stopped: new Set(),
    standstills: [],
    async mark(what, { name }) {
      await pool.query(`insert into ${known.schema}.history (what, process) values ($1, $2)`, [what, name])
    },
  }
}

function startConsumer({ url, schema, scenario, programs, random, children }: Stage): void {
  const { keys, options, chances } = scenario
  const queues = { [orderedQueue]: scenario.queue }
  const seed = random.below(2 ** 32)
  children.push(programs.consumer({ url, schema, seed, keys, queues, options, retryMs, chances }))
}

interface Stirred {
  readonly reader: HistoryReader
  readonly read: () => Promise<void>
  readonly publishing: Promise<Published>
}

/** Reads the log until everything is delivered, and harms a process whenever another share of the messages has been. */
async function stir(stage: Stage, { reader, read, publishing }: Stirred): Promise<void> {
  const { messages, kills, stalls, withinMs, say = () => {} } = stage.scenario
  const harms = shuffled(stage.random, [...Array<Harm>(kills).fill(kill), ...Array<Harm>(stalls).fill(stall)])
  const deadline = performance.now() + withinMs
  const published = observed(publishing)
  for (
    let done = 0;
    done < harms.length || !published.isOver || reader.waiting > 0;
    await wait(readEveryMs)
  ) {
    await read()
    if (published.error !== undefined) throw published.error
    if (performance.now() > deadline)
      throw new Error(`${reader.waiting} messages are left after ${withinMs} ms`)
    const harm = harms[done]
    if (harm === undefined || reader.acked < ((done + 1) * messages) / (harms.length + 1)) continue
    await harm(stage)
    done += 1
    say(`${reader.acked} delivered, ${reader.waiting} waiting, ${done} of ${harms.length} processes harmed`)
  }
  await Promise.all(stage.standstills)
}

type Harm = (stage: Stage) => Promise<void>

// What a mark excuses is rather too little than too much: a process is marked as dead before it is, and as standing still only while it does.
async function kill(stage: Stage): Promise<void> {
  const { children, stopped, random, mark } = stage
  const victim = random.pick(children.filter((child) => !stopped.has(child)))
  await mark('killing', victim)
  victim.kill('SIGKILL')
  expect(await victim.ended).toEqual({ code: null, signal: 'SIGKILL', output: '' })
  children.splice(children.indexOf(victim), 1)
  startConsumer(stage)
}

/** Resolves when it stands still. */
async function stall(stage: Stage): Promise<void> {
  const { children, stopped, random, mark, scenario, standstills } = stage
  const victim = random.pick(children.filter((child) => !stopped.has(child)))
  const { leaseMs } = scenario.options
  const lastsMs = 1.5 * leaseMs + random.below(leaseMs / 2)
  stopped.add(victim)
  victim.kill('SIGSTOP')
  await mark('stopping', victim)
  const goOn = async (): Promise<void> => {
    await wait(lastsMs)
    await mark('continuing', victim)
    victim.kill('SIGCONT')
    stopped.delete(victim)
  }
  standstills.push(goOn())
}

function shuffled<T>(random: Random, all: readonly T[]): readonly T[] {
  return all
    .map((one) => ({ one, place: random.below(2 ** 32) }))
    .sort((a, b) => a.place - b.place)
    .map(({ one }) => one)
}

function observed(promise: Promise<unknown>): { readonly isOver: boolean; readonly error: unknown } {
  const state = { isOver: false, error: undefined as unknown }
  promise
    .catch((error: unknown) => {
      state.error = error
    })
    .finally(() => {
      state.isOver = true
    })
  return state
}
