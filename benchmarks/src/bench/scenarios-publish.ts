import { tuned } from './cast.ts'
import type { Scenario } from './scenario.ts'
import { peers, publishSeconds } from './scenarios-backlog.ts'
import { publishing, publishMany } from './stage.ts'

const more = { figure: 'perSecond', isMoreBetter: true } as const

export const publishers: readonly Scenario[] = [
  {
    name: 'publish-many',
    title: 'Publish many: 1,000 a transaction, one connection',
    about:
      'By the call that each has for many. pg-transactional-outbox has none: its inserts are all on their way at once.',
    ...more,
    cast: tuned('postbox', ...peers, 'floor'),
    isPublishing: true,
    messages: 120_000,
    quick: { messages: 20_000 },
    paceOf: ({ contender }) => contender.publishPace,
    seconds: publishSeconds,
    async run(stage, messages) {
      const { perSecond, costs } = await publishMany(stage, messages)
      return { perSecond, ...costs }
    },
  },
  publishOne(1, { messages: 1_000, perSecond: 400, rounds: 3 }),
  publishOne(16, { messages: 4_000, perSecond: 1_300, rounds: 3 }),
  publishOne(64, { messages: 8_000, perSecond: 1_600, quick: 4_000 }),
]

interface Size {
  readonly messages: number
  readonly quick?: number
  readonly perSecond: number
  readonly rounds?: number
}

/** The floor's insert is what an application does without an outbox: the plain insert. */
function publishOne(committers: number, { messages: all, quick, perSecond: pace, rounds }: Size): Scenario {
  return {
    name: `publish-${committers}`,
    title: `Publish one a transaction, ${committers} committer${committers === 1 ? '' : 's'}`,
    about: 'BEGIN, publish, COMMIT on each connection, one after the other. The floor is a plain insert.',
    ...more,
    cast: tuned(
      'floor',
      'postbox',
      'graphile-worker',
      'pg-boss notify',
      'bullmq',
      'pg-boss',
      'pg-transactional-outbox',
    ),
    isPublishing: true,
    messages: all,
    ...(rounds === undefined ? {} : { rounds }),
    quick: quick === undefined ? null : { messages: quick },
    seconds: (_, messages) => messages / pace,
    async run(stage, messages) {
      const { perSecond, costs } = await publishing(stage, messages, (player) =>
        player.tell('publishEach', { messages, committers }),
      )
      return { perSecond, ...costs }
    },
  }
}
