import { type Body, byQueue, type Driver, type DriverInput, type Handler } from './driver.ts'
import { Client, peer } from './peer.ts'

type Options = Readonly<Record<string, unknown>>

interface Queue {
  waitUntilReady(): Promise<unknown>
  add(name: string, data: Body, options?: Options): Promise<unknown>
  addBulk(
    jobs: readonly { readonly name: string; readonly data: Body; readonly opts?: Options }[],
  ): Promise<unknown>
  close(): Promise<void>
}

interface Worker {
  on(event: 'error', listener: (error: Error) => void): void
  run(): Promise<void>
  waitUntilReady(): Promise<unknown>
  close(): Promise<void>
}

interface BullMq {
  readonly Queue: new (name: string, options: Options) => Queue
  readonly Worker: new (
    name: string,
    processor: (job: { readonly data: Body }) => Promise<void>,
    options: Options,
  ) => Worker
  readonly createPostgresBackend: unknown
  setDefaultBackendFactory(factory: unknown): void
  runMigrations(client: unknown): Promise<number>
}

interface Settings {
  readonly connection?: Options
  readonly worker?: Options
  readonly job?: Options
  readonly queues?: number
}

export function openBullMq({ url, settings }: DriverInput): Driver {
  const bullmq: BullMq = peer('bullmq')
  bullmq.setDefaultBackendFactory(bullmq.createPostgresBackend)
  const { connection, worker: workerOptions, job = {}, queues: count = 1 } = settings as Settings
  const names = Array.from({ length: count }, (_, index) => `bench-${index}`)
  let queues: readonly Queue[] = []
  let workers: readonly Worker[] = []
  let handle: Handler | undefined
  const addMany = async (bodies: readonly Body[], optionsOf: (body: Body) => Options): Promise<void> => {
    for (const [index, part] of byQueue(bodies, count))
      await queues[index]!.addBulk(part.map((data) => ({ name: names[index]!, data, opts: optionsOf(data) })))
  }
  const openWorker = (name: string): Worker => {
    const work = async ({ data }: { readonly data: Body }): Promise<void> => handle!(data)
    const options = { ...workerOptions, connection: { connectionString: url, ...connection }, autorun: false }
    const worker = new bullmq.Worker(name, work, options)
    worker.on('error', (error) => console.error(error))
    return worker
  }
  return {
    async setup() {
      const client = new Client({ connectionString: url })
      await client.connect()
      await bullmq.runMigrations(client)
      await client.end()
    },
    async openPublisher(max) {
      queues = names.map((name) => new bullmq.Queue(name, { connection: { connectionString: url, max } }))
      await Promise.all(queues.map((queue) => queue.waitUntilReady()))
    },
    publishMany: (bodies) => addMany(bodies, () => job),
    async publishOne(_, body) {
      await queues[body.n % count]!.add(names[body.n % count]!, body)
    },
    publishTimers(bodies) {
      const now = Date.now()
      return addMany(bodies, ({ at }) => ({ delay: Math.max(0, at! - now) }))
    },
    async openConsumer() {
      workers = names.map(openWorker)
      await Promise.all(workers.map((worker) => worker.waitUntilReady()))
    },
    async consume(handler) {
      handle = handler
      // Resolves when it is closed.
      for (const worker of workers) worker.run().catch((error: unknown) => console.error(error))
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(workers.map((worker) => worker.close()))
      await Promise.all(queues.map((queue) => queue.close()))
    },
  }
}
