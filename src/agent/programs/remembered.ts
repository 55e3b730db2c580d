// Signatures and long lists are not read again every second where nothing has changed.

/** Computes anew when an argument is another than last time. They are compared as they are: values here are never altered. */
export const remembered = <A extends readonly unknown[], T>(compute: (...args: A) => T): ((...args: A) => T) => {
  let last: { readonly args: A; readonly value: T } | null = null
  return (...args) => {
    if (last === null || args.some((arg, at) => arg !== last?.args[at])) last = { args, value: compute(...args) }
    return last.value
  }
}
