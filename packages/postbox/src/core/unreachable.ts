/** Closes a `switch` over a union: adding a member becomes a compile error at every place that must decide about it. */
export function unreachable(value: never): never {
  throw new TypeError(`unreachable: ${JSON.stringify(value)}`)
}
