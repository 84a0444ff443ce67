/** True when each named member is a function: how clients are told apart without importing them. */
export function hasMethods<Name extends string>(
  candidate: object,
  ...names: readonly Name[]
): candidate is Record<Name, (...args: never[]) => unknown> {
  return names.every((name) => typeof (candidate as Record<string, unknown>)[name] === 'function')
}
