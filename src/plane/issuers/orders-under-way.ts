// The orders that requests of this process are about: others wait for the end of one.

export type OrdersUnderWay = {
  has(id: string): boolean
  /** Resolves when it is not under way here. */
  over(id: string): Promise<void>
  begin(id: string): void
  end(id: string): void
}

export const openOrdersUnderWay = (): OrdersUnderWay => {
  const underWay = new Map<string, { readonly over: Promise<void>; readonly end: () => void }>()
  return {
    has: (id) => underWay.has(id),
    over: async (id) => underWay.get(id)?.over,
    begin(id) {
      const { promise: over, resolve: end } = Promise.withResolvers<void>()
      underWay.set(id, { over, end })
    },
    end(id) {
      underWay.get(id)?.end()
      underWay.delete(id)
    },
  }
}
