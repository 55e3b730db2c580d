// @peculiar/x509 asks at import for the parts of the metadata proposal its dependency injection uses. It decorates
// nothing that we call, so a store of what it writes is enough, and saves a dependency.

type Target = object
const stored = new WeakMap<Target, Map<unknown, unknown>>()

const defineMetadata = (key: unknown, value: unknown, target: Target): void => {
  const own = stored.get(target) ?? new Map<unknown, unknown>()
  own.set(key, value)
  stored.set(target, own)
}

const getOwnMetadata = (key: unknown, target: Target): unknown => stored.get(target)?.get(key)

Object.assign(Reflect, { defineMetadata, getOwnMetadata, getMetadata: getOwnMetadata })
