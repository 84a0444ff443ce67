import { atDefaults, tuned } from './cast.ts'
import { drainBesideScheduled, recover } from './long-runs.ts'
import type { Scenario } from './scenario.ts'
import { drainSeconds, fast, publishSeconds } from './scenarios-backlog.ts'

export const specials: readonly Scenario[] = [
  {
    name: 'scheduled',
    title: 'Drain a million messages beside a million that are due tomorrow',
    about: 'What is not due must not be in the way of what is.',
    figure: 'perSecond',
    isMoreBetter: true,
    cast: tuned(...fast),
    cannot: {
      bullmq: 'it would take half an hour for a million',
      'pg-transactional-outbox': 'it would take hours for a million',
    },
    messages: 1_000_000,
    quick: null,
    rounds: 1,
    seconds: (part, messages) => publishSeconds(part, messages) + drainSeconds(part, messages),
    run: drainBesideScheduled,
  },
  {
    name: 'recovery',
    title: 'After kill -9: until another process has handled what the dead one held',
    about:
      'A process takes messages whose handlers never end, and is killed; another one is there. Counted until all are handled.',
    figure: 'recoveryMs',
    isMoreBetter: false,
    cast: [
      ...atDefaults('postbox', 'bullmq', 'pg-transactional-outbox'),
      ...tuned('postbox short lease', 'pg-boss heartbeat', 'pg-transactional-outbox'),
    ],
    cannot: {
      'graphile-worker':
        'what a dead process has locked comes back after four hours, which cannot be set; sooner only with Worker Pro',
      'pg-boss at defaults': 'a message comes back when it has expired, after 15 minutes',
    },
    messages: 10,
    quick: null,
    rounds: 1,
    seconds: () => 25,
    run: recover,
  },
]
