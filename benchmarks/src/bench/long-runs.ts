import type { LoadWindow } from '../contenders/protocol.ts'
import type { Metrics } from './metrics.ts'
import { drain, enter, play, publishMany, refuseMiscount, type Stage, untilDone } from './stage.ts'

export async function drainByFour(stage: Stage, messages: number): Promise<Metrics> {
  await publishMany(stage, messages)
  const one = await drain(stage, { messages })
  await publishMany(stage, messages)
  const four = await drain(stage, { messages, processes: 4 })
  const { perSecond: oneProcess } = one
  const { perSecond: fourProcesses } = four
  return { oneProcess, fourProcesses, fourToOne: fourProcesses / oneProcess, ...four.costs }
}

const perSecond = 2_000
const thirds = 3
/** Of load that does not count: connecting, planning and compiling are nobody's latency. */
export const leadSeconds = 2

/** In thirds, which are minutes in a full run. The p99 that counts is that of the last. */
export async function pinXmin(stage: Stage, messages: number): Promise<Metrics> {
  const pin = await stage.database.pinXmin()
  // So that each third has whole messages.
  const seconds = Math.max(thirds, Math.round(messages / perSecond))
  const { tally, late, windows } = await play(stage, (player) =>
    player.tell('load', { perSecond, leadSeconds, seconds, windowSeconds: seconds / thirds }),
  ).finally(() => pin.release())
  refuseMiscount([tally], 1, late)
  const [row] = await stage.database.query<{ dead: number }>(
    'select coalesce(sum(n_dead_tup), 0)::float8 as dead from pg_stat_user_tables',
  )
  const [first, second, last] = windows as [LoadWindow, LoadWindow, LoadWindow]
  return {
    p50Ms: last.p50Ms,
    p99Ms: last.p99Ms,
    rate1: first.perSecond,
    rate2: second.perSecond,
    rate3: last.perSecond,
    lastToFirst: last.perSecond / first.perSecond,
    p99Ms1: first.p99Ms,
    p99Ms2: second.p99Ms,
    p99Ms3: last.p99Ms,
    deadAtEnd: row!.dead,
    late,
  }
}

const dayMs = 86_400_000

export async function drainBesideScheduled(stage: Stage, messages: number): Promise<Metrics> {
  await play(stage, (player) => player.tell('scheduleMany', { messages, slice: 1_000, delayMs: dayMs }))
  await publishMany(stage, messages, messages)
  const { perSecond: rate, costs } = await drain(stage, { messages, left: messages, deadlineMs: 600_000 })
  return { perSecond: rate, ...costs }
}

/** A process whose handlers never end is killed as soon as one has begun; then another one starts. */
export async function recover(stage: Stage, messages: number): Promise<Metrics> {
  await publishMany(stage, messages)
  await using doomed = await enter(stage)
  await doomed.tell('openConsumer', null)
  await doomed.tell('consume', { messages, behaviour: { kind: 'hang' } })
  await untilDone(stage, [doomed], { messages: 1, left: messages, deadlineMs: 30_000 })
  await using heir = await enter(stage)
  await heir.tell('openConsumer', null)
  await doomed.kill()
  const killedAt = performance.now()
  await heir.tell('consume', { messages, behaviour: { kind: 'nothing' } })
  await untilDone(stage, [heir], { messages })
  const recoveryMs = performance.now() - killedAt
  const { tally } = await heir.tell('stop', null)
  refuseMiscount([tally])
  return { recoveryMs }
}
