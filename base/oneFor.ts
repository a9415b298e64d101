/** What is made once for each key, when it is first asked for, and forgotten with it. */
export function oneFor<Key extends object, Value extends object>(make: (key: Key) => Value): (key: Key) => Value {
  const made = new WeakMap<Key, Value>();
  return (key) => {
    const known = made.get(key);
    if (known !== undefined) return known;
    const value = make(key);
    made.set(key, value);
    return value;
  };
}
