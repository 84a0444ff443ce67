import { setTimeout as wait } from 'node:timers/promises'
import { type Body, bodyOf, type Driver } from './driver.ts'
import { Client } from './peer.ts'
import type { Application, PingPongInput, Timed, TimersInput } from './protocol.ts'
import { committerOf } from './publish.ts'
import { Tally } from './tally.ts'

const warmUps = 20

/**
 * From before BEGIN to the start of the handler, in one process, so that one clock measures both. The pause is there for the consumer to fall asleep; it varies, or it
 * could keep step with somebody's polling.
 */
export async function pingPong(
  driver: Driver,
  application: Application,
  input: PingPongInput,
): Promise<Timed> {
  const commit = committerOf(driver, application)
  const tally = new Tally(input.messages + warmUps)
  const latenciesMs: number[] = []
  let arrive: (body: Body) => void = () => {}
  await driver.openPublisher(1)
  await driver.openConsumer()
  await driver.consume((body) => arrive(body))
  const client = new Client({ connectionString: application.url })
  await client.connect()
  for (let n = 0; n < input.messages + warmUps; n += 1) {
    await wait(input.pauseMs * (0.5 + Math.random()))
    const arrived = new Promise<number>((resolve) => {
      arrive = (body) => {
        tally.add(body.n)
        resolve(performance.now())
      }
    })
    const publishedAt = performance.now()
    await commit(client, bodyOf(n))
    const ms = (await arrived) - publishedAt
    if (n >= warmUps) latenciesMs.push(ms)
  }
  await client.end()
  return { tally: tally.toText(), latenciesMs }
}

/** How long after its time each is run. The database's clock is this machine's. */
export async function runTimers(driver: Driver, input: TimersInput): Promise<Timed> {
  const { messages, leadMs, spreadMs } = input
  const tally = new Tally(messages)
  const latenciesMs: number[] = []
  await driver.openPublisher(1)
  await driver.openConsumer()
  const firstAt = Date.now() + leadMs
  const all = new Promise<void>((resolve) => {
    void driver.consume(({ n, at }) => {
      latenciesMs.push(Date.now() - at!)
      tally.add(n)
      if (tally.handled === messages) resolve()
    })
  })
  const atOf = (n: number): number => firstAt + Math.round((n * spreadMs) / messages)
  await driver.publishTimers(Array.from({ length: messages }, (_, n) => bodyOf(n, atOf(n))))
  await all
  return { tally: tally.toText(), latenciesMs }
}
