import type { Timed } from '../contenders/protocol.ts'
import { atDefaults, tuned } from './cast.ts'
import { leadSeconds, pinXmin } from './long-runs.ts'
import type { Metrics } from './metrics.ts'
import type { Scenario } from './scenario.ts'
import { fast } from './scenarios-backlog.ts'
import { play, refuseMiscount } from './stage.ts'
import { percentile } from './statistics.ts'

const fastest = { figure: 'p99Ms', isMoreBetter: false } as const
const waking = ['postbox', 'graphile-worker', 'pg-boss notify', 'bullmq'] as const
const tooSlow = 'it is slower than that'
const idlePauseMs = 20
const loadPerSecond = 1_000
const timersPerSecond = 125
const timerLeadSeconds = 2
const steady =
  'Each message has a time at which it should be published, and its latency counts from then. Every 10 ms those that are due by then are published, in one transaction, by everybody alike: a transaction for each would take more processor time than this machine has, and what was measured would be the publishers.'

export const latencies: readonly Scenario[] = [
  {
    name: 'idle-latency',
    title: 'From publish to handler, while nothing else happens',
    about: 'One message at a time, from before BEGIN to the start of its handler, in one process.',
    ...fastest,
    cast: [
      ...tuned(...waking, 'pg-transactional-outbox'),
      ...atDefaults('postbox', 'graphile-worker', 'bullmq'),
    ],
    cannot: { 'pg-boss at defaults': 'it polls every two seconds: that is its latency' },
    isPublishing: true,
    messages: 200,
    quick: { messages: 50 },
    seconds: (_, messages) => ((messages + 20) * (idlePauseMs + 8)) / 1_000,
    run: async (stage, messages) =>
      latencyOf(await play(stage, (player) => player.tell('pingPong', { messages, pauseMs: idlePauseMs }))),
  },
  {
    name: 'load-1000',
    title: 'From publish to handler, at 1,000 a second',
    about: steady,
    ...fastest,
    cast: tuned('postbox', 'graphile-worker', 'pg-boss notify'),
    cannot: { bullmq: tooSlow, 'pg-transactional-outbox': tooSlow },
    messages: 8_000,
    quick: null,
    rounds: 3,
    seconds: (_, messages) => messages / loadPerSecond + leadSeconds,
    async run(stage, messages) {
      const seconds = messages / loadPerSecond
      const input = { perSecond: loadPerSecond, leadSeconds, seconds, windowSeconds: seconds }
      const { tally, late, windows } = await play(stage, (player) => player.tell('load', input))
      refuseMiscount([tally], 1, late)
      return { p50Ms: windows[0]!.p50Ms, p99Ms: windows[0]!.p99Ms }
    },
  },
  {
    name: 'timers',
    title: 'Timers: from due to the handler',
    about: 'Published two seconds and more before they are due, 125 a second.',
    ...fastest,
    cast: tuned(...fast, 'bullmq', 'pg-transactional-outbox'),
    messages: 750,
    quick: { messages: 250, isAlone: true },
    peerRounds: 3,
    seconds: (_, messages) => timerLeadSeconds + messages / timersPerSecond,
    run: async (stage, messages) => {
      const spreadMs = (messages * 1_000) / timersPerSecond
      const input = { messages, leadMs: timerLeadSeconds * 1_000, spreadMs }
      return latencyOf(await play(stage, (player) => player.tell('timers', input)))
    },
  },
  {
    name: 'pinned-xmin',
    title: '2,000 a second, while a transaction keeps dead rows from being removed',
    about: `A transaction with an old snapshot stays open all the time, three minutes in a full run: what dies cannot be vacuumed. Figures are of each third; the p99 is that of the last. Whoever falls behind is not waited for when the last message has been due for a minute. ${steady}`,
    ...fastest,
    cast: tuned('postbox', 'graphile-worker', 'pg-boss notify'),
    cannot: { bullmq: tooSlow, 'pg-transactional-outbox': tooSlow },
    messages: 360_000,
    quick: { messages: 32_000, isAlone: true, rounds: 1 },
    rounds: 1,
    seconds: (_, messages) => messages / 2_000 + leadSeconds,
    run: pinXmin,
  },
]

function latencyOf({ tally, latenciesMs }: Timed): Metrics {
  refuseMiscount([tally])
  return { p50Ms: percentile(latenciesMs, 50), p99Ms: percentile(latenciesMs, 99) }
}
