import type { Lifecycle } from '../lifecycle.ts'
import type { Delivering } from './delivering.ts'

/** The loops of an outbox at work deliver: they are told of what is published, and sleep on the test's clock. */
export function loopMode({ start, stop, drain }: Pick<Lifecycle, 'start' | 'stop' | 'drain'>): Delivering {
  return {
    begin: async () => void (await start()),
    deliver: async () => {},
    arrived: () => {},
    arrive: async () => {},
    drain,
    end: stop,
  }
}
