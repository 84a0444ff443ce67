import fc from 'fast-check'
import type { Command } from './command.ts'
import { episode } from './commands.ts'
import { episodeInOrder } from './commands-order.ts'

/** Some twenty commands, seldom more than forty. */
export const sequences: fc.Arbitrary<readonly Command[]> = fc
  .array(
    fc.oneof(
      { withCrossShrink: true },
      { weight: 3, arbitrary: episode },
      { weight: 2, arbitrary: episodeInOrder },
    ),
    { minLength: 1, maxLength: 16, size: 'max' },
  )
  .map((episodes) => episodes.flat().filter((command) => command !== null))
