import { type Body, byQueue, type Driver, type DriverInput, type Handler } from './driver.ts'
import { peer } from './peer.ts'

type Options = Readonly<Record<string, unknown>>

interface Job {
  readonly id: string
  readonly data: Body
}

interface Settings {
  readonly instance?: Options
  readonly queue?: Options
  readonly work?: Options
  /** Messages have one of so many. */
  readonly keys?: number
  readonly queues?: number
}

interface Boss {
  on(event: 'error', listener: (error: Error) => void): void
  start(): Promise<unknown>
  stop(options: Options): Promise<void>
  createQueue(name: string, options: Options): Promise<void>
  send(name: string, data: Body, options: Options): Promise<string | null>
  insert(name: string, jobs: readonly Options[]): Promise<unknown>
  work(name: string, options: Options, handler: (jobs: readonly Job[]) => Promise<unknown>): Promise<string>
}

export function openPgBoss({ url, settings }: DriverInput): Driver {
  const { PgBoss } = peer<{ PgBoss: new (options: Options) => Boss }>('pg-boss')
  const { instance, queue, work, keys, queues = 1 } = settings as Settings
  const names = Array.from({ length: queues }, (_, index) => `bench-${index}`)
  let boss: Boss | undefined
  const open = async (max: number): Promise<void> => {
    // One that publishes and consumes has it already.
    if (boss !== undefined) return
    boss = new PgBoss({ connectionString: url, max, ...instance })
    // Without a listener an error would end the process.
    boss.on('error', (error) => console.error(error))
    await boss.start()
  }
  const keyOf = ({ n }: Body): Options => (keys === undefined ? {} : { singletonKey: `key-${n % keys}` })
  const jobOf = (data: Body): Options => ({
    data,
    ...keyOf(data),
    ...(data.at === undefined ? {} : { startAfter: new Date(data.at) }),
  })
  const publishMany = async (bodies: readonly Body[]): Promise<void> => {
    for (const [index, part] of byQueue(bodies, queues)) await boss!.insert(names[index]!, part.map(jobOf))
  }
  return {
    async setup() {
      await open(2)
      for (const name of names) await boss!.createQueue(name, queue ?? {})
    },
    openPublisher: () => open(10),
    publishMany,
    async publishOne(client, body) {
      const db = { executeSql: (text: string, values: unknown[]) => client.query(text, values) }
      await boss!.send(names[body.n % queues]!, body, { db, ...keyOf(body) })
    },
    publishTimers: publishMany,
    // Ten connections are its default.
    openConsumer: () => open(10),
    async consume(handler) {
      const run = work?.['perJobResults'] === true ? jobByJob(handler) : allTogether(handler)
      for (const name of names) await boss!.work(name, work ?? {}, run)
    },
    async [Symbol.asyncDispose]() {
      await boss?.stop({ graceful: true, timeout: 5_000 })
    },
  }
}

type Run = (jobs: readonly Job[]) => Promise<unknown>

function allTogether(handler: Handler): Run {
  return (jobs) => Promise.all(jobs.map(async ({ data }) => handler(data)))
}

function jobByJob(handler: Handler): Run {
  const resultOf = async ({ id, data }: Job): Promise<Options> => {
    try {
      await handler(data)
      return { id, status: 'completed' }
    } catch {
      return { id, status: 'failed' }
    }
  }
  return (jobs) => Promise.all(jobs.map(resultOf))
}
