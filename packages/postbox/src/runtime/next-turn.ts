/**
 * Calls back in the next turn of the event loop. As it was when the package was loaded, which is why this is loaded with it, though only deliveries need it: tests put a function of
 * their own in its place, and nothing of theirs may keep a handler from being started.
 */
export const inNextTurn: (callback: () => void) => void = setImmediate
