/** The known name that was probably meant, if one is near enough to be a typing error: the nearest of them. */
export function suggest(given: string, known: readonly string[]): string | undefined {
  const reaches = given.length < 5 ? [0, 1] : [0, 1, 2]
  const near = (edits: number) => (name: string) => isNear(given.toLowerCase(), name.toLowerCase(), edits)
  return reaches.flatMap((edits) => known.filter(near(edits)))[0]
}

/** Whether so many edits (insert, delete, replace, swap of neighbours) make one word of the other. At most two, so few ways are tried. */
function isNear(a: string, b: string, edits: number): boolean {
  if (a === b) return true
  if (a[0] === b[0]) return isNear(a.slice(1), b.slice(1), edits)
  if (edits === 0) return false
  const left = edits - 1
  return (
    isNear(a.slice(1), b, left) ||
    isNear(a, b.slice(1), left) ||
    isNear(a.slice(1), b.slice(1), left) ||
    (a[0] === b[1] && a[1] === b[0] && isNear(a.slice(2), b.slice(2), left))
  )
}
