/** Adding a member to a union is a compile error where this is called. */
export function unreachable(value: never): never {
  throw new Error(`unexpected value: ${String(value)}`)
}
