// All orders in which programs can be interleaved: each session's steps in their own order, mixed with the others' in every way.

/** Whose step comes, by the session's letter: "ABBA". */
export type Order = string

/** The first in the alphabet: all of A, then all of B. */
export function firstOrder(lengths: ReadonlyMap<string, number>): Order {
  return [...lengths].map(([letter, length]) => letter.repeat(length)).join('')
}

/** The one that comes after it; null: it was the last. */
export function nextOrder(order: Order): Order | null {
  const letters = [...order]
  const turn = letters.findLastIndex((letter, at) => letter < (letters[at + 1] ?? ''))
  if (turn < 0) return null
  const other = letters.findLastIndex((letter) => letter > letters[turn]!)
  const swapped = letters.with(turn, letters[other]!).with(other, letters[turn]!)
  return [...swapped.slice(0, turn + 1), ...swapped.slice(turn + 1).reverse()].join('')
}

/** The first one after it that begins differently within so many letters. */
export function nextOtherwise(order: Order, letters: number): Order | null {
  const rest = [...order.slice(letters)].sort().reverse().join('')
  return nextOrder(order.slice(0, letters) + rest)
}

/** How many orders begin with these letters of it: the multinomial coefficient of what is left. */
export function countBeginning(order: Order, letters: number): number {
  const rest = [...order.slice(letters)].sort()
  let ways = 1
  // The nth letter, of which `same` came so far: n / same of all that there were.
  for (let nth = 1, same = 1; nth <= rest.length; nth++, same++) {
    if (rest[nth - 1] !== rest[nth - 2]) same = 1
    ways = (ways * nth) / same
  }
  return Math.round(ways)
}
