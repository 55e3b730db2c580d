// Counts the assertions that tests execute. Loaded before them (`node --import`) it takes the place of `node:assert/strict`.
// Only on demand: of a failing `assert(...)` without a message Node quotes the line of the call, which is then one of this file.

import assert from 'node:assert/strict'
import { registerHooks } from 'node:module'
import { counted } from './test-reporter.ts'

counted.assertions = 0
const count = (): void => void (counted.assertions = (counted.assertions ?? 0) + 1)

const countingAssert = new Proxy(assert, {
  apply(target, self, args) {
    count()
    return Reflect.apply(target, self, args) as unknown
  },
  get(target, name, proxy) {
    const value: unknown = Reflect.get(target, name, target)
    if (value === target) return proxy as unknown
    const isClass = /^[A-Z]/.test(String(name))
    if (typeof value !== 'function' || isClass) return value
    return (...args: unknown[]): unknown => {
      count()
      return Reflect.apply(value, target, args) as unknown
    }
  },
})

registerHooks({
  resolve(specifier, context, next) {
    const replaced = specifier === 'node:assert/strict' && context.parentURL !== import.meta.url
    return replaced
      ? { url: import.meta.url, format: 'module-typescript', shortCircuit: true }
      : next(specifier, context)
  },
})

export default countingAssert
