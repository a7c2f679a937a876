CREATE TABLE customers(id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE orders(id INTEGER PRIMARY KEY, customer_id INTEGER, status TEXT);
CREATE TABLE items(order_id INTEGER, product TEXT, quantity INTEGER, cents INTEGER);
INSERT INTO customers VALUES (1, 'Ada'), (2, 'Ben'), (3, 'Cleo'), (4, 'Dora'), (5, 'Emil');
INSERT INTO orders VALUES (11, 1, 'paid'), (12, 2, 'paid'), (13, 3, 'open'), (14, 4, 'paid'),
  (15, 5, 'paid'), (16, 2, 'cancelled'), (17, 2, 'paid'), (18, 1, 'paid'), (19, 3, 'paid'), (20, 4, 'open');
INSERT INTO items VALUES (11, 'lamp', 2, 2500), (11, 'mug', 5, 500), (12, 'chair', 1, 5999),
  (13, 'sofa', 1, 899), (14, 'table', 1, 12000), (14, 'mug', 1, 600), (15, 'mug', 4, 500),
  (16, 'desk', 1, 400), (17, 'kettle', 1, 2949), (17, 'kettle', 1, 2949), (17, 'pan', 1, 2949),
  (18, 'mug', 4, 500), (19, 'bowl', 10, 150), (19, 'spoon', 30, 50), (20, 'bench', 1, 100);
