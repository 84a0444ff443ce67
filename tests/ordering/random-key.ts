import type { Random } from '../chaos/random.ts'

/** Some are hot: of 200 the first gets 7 messages in 100, the last one in 400. */
export function randomKey(random: Random, keys: number): string {
  const share = random.below(2 ** 20) / 2 ** 20
  return `key-${Math.floor(share * share * keys)}`
}
