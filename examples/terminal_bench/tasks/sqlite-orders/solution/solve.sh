#!/bin/bash
set -eu
cd /app
sqlite3 shop.db "DELETE FROM items WHERE rowid = (SELECT MAX(rowid) FROM items WHERE order_id = 17 AND product = 'kettle')"
echo name,total_cents > top.csv
sqlite3 -separator , shop.db "SELECT c.name, SUM(i.quantity * i.cents) AS total FROM customers c
  JOIN orders o ON o.customer_id = c.id JOIN items i ON i.order_id = o.id
  WHERE o.status = 'paid' GROUP BY c.id ORDER BY total DESC LIMIT 3" >> top.csv
