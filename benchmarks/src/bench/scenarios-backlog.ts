import type { Behaviour } from '../contenders/protocol.ts'
import { atDefaults, type Part, tuned } from './cast.ts'
import { drainByFour } from './long-runs.ts'
import type { Metrics } from './metrics.ts'
import type { Scenario } from './scenario.ts'
import { drain, publishMany, type Stage } from './stage.ts'

export const peers = ['graphile-worker', 'pg-boss', 'bullmq', 'pg-transactional-outbox'] as const
export const fast = ['postbox', 'graphile-worker', 'pg-boss'] as const

const more = { figure: 'perSecond', isMoreBetter: true } as const

/** Published first, then drained. */
export const drainSeconds = (part: Part, messages: number): number =>
  publishSeconds(part, messages) + messages / part.pace

export const publishSeconds = ({ contender }: Part, messages: number): number =>
  messages / contender.publishPace

const paceOf = ({ pace }: Part): number => pace

const paced = { ...more, paceOf, seconds: drainSeconds } as const

export const backlogs: readonly Scenario[] = [
  {
    name: 'drain-noop',
    title: 'Drain a backlog, handlers do nothing, tuned',
    about:
      'Messages are published, then one process handles them. What is left is what a message costs the queue itself.',
    ...paced,
    cast: tuned('postbox', ...peers, 'floor'),
    messages: 150_000,
    quick: { messages: 20_000 },
    run: (stage, messages) => publishAndDrain(stage, messages),
  },
  {
    name: 'drain-defaults',
    title: 'Drain a backlog, handlers do nothing, at defaults',
    about: 'The same, with nothing set but the connection.',
    ...paced,
    cast: atDefaults('postbox', ...peers),
    messages: 150_000,
    quick: { messages: 20_000 },
    run: (stage, messages) => publishAndDrain(stage, messages),
  },
  {
    name: 'drain-1ms',
    title: 'Drain a backlog, handlers take a millisecond',
    about: 'A timer of a millisecond in each handler, as if it waited for somebody.',
    ...paced,
    cast: tuned('postbox', ...peers),
    messages: 40_000,
    quick: null,
    rounds: 3,
    run: (stage, messages) => publishAndDrain(stage, messages, { behaviour: { kind: 'wait', ms: 1 } }),
  },
  {
    name: 'four-processes',
    title: 'Drain a backlog by one process, and by four',
    about:
      'Four processes on one table, beside one: with two processors there is little to win, but nothing should be lost.',
    figure: 'fourProcesses',
    isMoreBetter: true,
    paceOf,
    seconds: (part, messages) => 2 + 2 * drainSeconds(part, messages),
    cast: tuned(...fast, 'bullmq'),
    cannot: {
      'pg-transactional-outbox':
        'a second process makes its row locks fail: messages wait for their locks to run out, some are given up',
    },
    messages: 300_000,
    quick: { messages: 60_000, isAlone: true, rounds: 1 },
    peerRounds: 1,
    run: drainByFour,
  },
  {
    name: 'retry-storm',
    title: 'Drain a backlog of which every message fails twice',
    about:
      'Messages a second, each with three deliveries, retried as soon as the contender can. Where waits are fixed, most of the time is waiting.',
    ...paced,
    cast: tuned(
      'postbox retrying at once',
      'graphile-worker backing off',
      'pg-boss job by job',
      'bullmq retrying at once',
      'pg-transactional-outbox retrying',
    ),
    messages: 12_000,
    quick: null,
    rounds: 3,
    seconds: (part, messages) =>
      drainSeconds(part, messages) + (part.contender.driver === 'graphile-worker' ? 10 : 2),
    run: (stage, messages) =>
      publishAndDrain(stage, messages, { behaviour: { kind: 'fail', times: 2 }, times: 3 }),
  },
  {
    name: 'keyed-drain',
    title: 'Drain a backlog in order, message by message within each of 1,000 keys',
    about: 'Whether the order is kept is checked: a run that breaks it is not reported.',
    ...paced,
    cast: tuned(
      'postbox in order',
      'graphile-worker by key',
      'pg-boss by key',
      'pg-transactional-outbox by key',
    ),
    cannot: { bullmq: 'groups are a feature of BullMQ Pro, on Redis' },
    messages: 100_000,
    quick: null,
    rounds: 3,
    run: (stage, messages) => publishAndDrain(stage, messages, { keys: 1_000 }),
  },
  {
    name: 'twenty-queues',
    title: 'Drain 20 queues by one process',
    about: 'The backlog is spread over 20 queues, with a handler each.',
    ...paced,
    cast: tuned(
      'postbox 20 queues',
      'graphile-worker 20 queues',
      'pg-boss 20 queues',
      'bullmq 20 queues',
      'pg-transactional-outbox 20 queues',
    ),
    messages: 75_000,
    quick: null,
    rounds: 3,
    run: (stage, messages) => publishAndDrain(stage, messages),
  },
  {
    name: 'options',
    title: 'What options of Postbox cost: drain a backlog',
    about:
      'A zod schema for the body, `onEvent`, a key on each message, and keys in order, beside none of them.',
    ...paced,
    cast: tuned('postbox', 'postbox onEvent', 'postbox zod', 'postbox keyed', 'postbox in order'),
    messages: 100_000,
    quick: null,
    rounds: 3,
    run: (stage, messages) => publishAndDrain(stage, messages),
  },
  {
    name: 'million',
    title: 'Drain a million messages',
    about:
      'Its memory is what counts: a backlog must not fill the heap. Postbox alone; its peers drain as many in the scenario with a million scheduled ones.',
    ...more,
    cast: tuned('postbox'),
    messages: 1_000_000,
    quick: { messages: 60_000, isAlone: true, rounds: 1 },
    rounds: 1,
    seconds: drainSeconds,
    run: (stage, messages) => publishAndDrain(stage, messages, { deadlineMs: 600_000 }),
  },
]

interface DrainOptions {
  readonly behaviour?: Behaviour
  readonly times?: number
  readonly keys?: number
  readonly deadlineMs?: number
}

/** The bytes of WAL are those of both, from the publisher to the acknowledgement; all other costs are of the drain. */
async function publishAndDrain(stage: Stage, messages: number, options: DrainOptions = {}): Promise<Metrics> {
  const published = await publishMany(stage, messages)
  const drained = await drain(stage, { messages, ...options })
  const walBytes = (published.walBytes + drained.walBytes) / messages
  return { perSecond: drained.perSecond, ...drained.costs, walBytes }
}
