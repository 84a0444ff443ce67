/** The known name that was probably meant, if one is near enough to be a typing error. */
export function suggest(given: string, known: readonly string[]): string | undefined {
  const reach = given.length < 5 ? 1 : 2
  return known
    .map((name) => ({ name, distance: editDistance(given.toLowerCase(), name.toLowerCase(), reach) }))
    .filter(({ distance }) => distance <= reach)
    .sort((a, b) => a.distance - b.distance)[0]?.name
}

/** Edits (insert, delete, replace, swap of neighbours) between two words; gives up early on words of other lengths. */
function editDistance(a: string, b: string, reach: number): number {
  if (Math.abs(a.length - b.length) > reach) return reach + 1
  let before: number[] = []
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let row = 1; row <= a.length; row++) {
    const current = [row]
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1]
      const swapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]
      current[column] = Math.min(
        (previous[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (previous[column - 1] ?? 0) + (same ? 0 : 1),
        swapped ? (before[column - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
      )
    }
    before = previous
    previous = current
  }
  return previous[b.length] ?? 0
}
